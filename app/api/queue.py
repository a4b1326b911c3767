"""The queue before the model: requests are answered in threads, few at a time; a client that goes away frees its place.

Knows neither HTTP's messages nor the engine: work is a function that takes `cancelled` and yields growing states.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar

from indexes.errors import QuotewrightError

State = TypeVar("State")
Work = Callable[[Callable[[], bool]], Iterator[State]]

FIRST_GUESS_S = 5.0  # how long an answer takes, before any has been written
STOPS = "the server stops"
PATIENCE_S = 3.0  # with work that goes on after the server was stopped
REMEMBERED = 0.8  # how much of the running mean a new answer's time leaves


class QueueFullError(QuotewrightError):
    """Too many requests wait; `retry_after_s` is when it is worth asking again, in whole seconds."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Job(Generic[State]):
    """Work that a thread does and a coroutine reads. Only the newest state is kept, for a state holds those before it:
    a slow reader costs no memory."""

    def __init__(self, work: Work[State]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._cancelled = threading.Event()
        self._beginning = threading.Lock()
        self._latest: State | None = None
        self._error: BaseException | None = None
        self._news = asyncio.Event()
        self.started_s: float | None = None
        self.done = asyncio.Event()
        self.reason: str | None = None

    def cancel(self, reason: str | None = None) -> None:
        """Have the thread stop before its next forward pass; `reason` is for people."""
        self.reason = self.reason or reason
        self._cancelled.set()

    def refuse(self, error: QueueFullError) -> None:
        """End work that no thread has begun yet; in the loop's thread."""
        with self._beginning:
            if self.started_s is None:
                self.end(error)

    def run(self) -> None:
        """Do the work, in a thread, unless it has been refused."""
        with self._beginning:
            if self.done.is_set():
                return
            self.started_s = time.perf_counter()
        error: BaseException | None = QueueFullError("cancelled before it was begun; ask again", 1)
        try:
            for state in self._work(self._cancelled.is_set):
                self._in_loop(self._put, state)
                error = None
        except BaseException as raised:  # the reader raises it
            error = raised
        self._in_loop(self.end, error)

    def _in_loop(self, call: Callable[..., None], value: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody reads any more
            self._loop.call_soon_threadsafe(call, value)

    def _put(self, state: State) -> None:
        self._latest = state
        self._news.set()

    def end(self, error: BaseException | None) -> None:
        """Tell the reader that no state will follow; in the loop's thread."""
        if not self.done.is_set():
            self._error = error
            self.done.set()
            self._news.set()

    async def states(self) -> AsyncGenerator[State]:
        """The states as they come, some left out if the reader is slow; the last one is always there. Raises what the
        work raised. A reader that leaves early cancels the work."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                state, self._latest = self._latest, None
                if state is not None:
                    yield state
                if self._latest is None and self.done.is_set():
                    break
            if self._error is not None:
                raise self._error
        finally:
            self.cancel()


class Queue:
    """Does the work of `running` requests at a time, in their order, while at most `waiting` more wait.

    One that takes longer than `timeout_s`, waiting included, is cancelled.
    """

    def __init__(self, running: int, waiting: int, timeout_s: float) -> None:
        self._running = running
        self._places = running + waiting
        self._timeout_s = timeout_s
        self._to_do: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._jobs: set[Job[Any]] = set()
        self._watchers: set[asyncio.Task[None]] = set()
        self._mean_s = FIRST_GUESS_S
        for number in range(running):  # daemons: a process that ends does not wait for a model that is being loaded
            threading.Thread(target=self._work, name=f"answers-{number}", daemon=True).start()

    def _work(self) -> None:
        while (job := self._to_do.get()) is not None:
            job.run()

    def __len__(self) -> int:
        """How many requests are being answered or wait."""
        return len(self._jobs)

    def begin(self, work: Work[State], gone: Callable[[], Awaitable[object]]) -> Job[State]:
        """Queue the work; `gone` returns when the client has gone. Raises QueueFullError."""
        if len(self._jobs) >= self._places:
            wait_s = max(1, math.ceil(self._mean_s * (len(self._jobs) - self._running + 1) / self._running))
            raise QueueFullError(
                f"{len(self._jobs)} requests are being answered or wait, the most there may be; "
                f"ask again in {wait_s} s",
                wait_s,
            )
        job = Job(work)
        self._to_do.put(job)
        self._jobs.add(job)
        watcher = asyncio.create_task(self._watch(job, gone))
        self._watchers.add(watcher)  # the loop holds tasks weakly
        watcher.add_done_callback(self._watchers.discard)
        return job

    async def _watch(self, job: Job[State], gone: Callable[[], Awaitable[object]]) -> None:
        """Cancel the work if the client goes or the time is up; free its place when its thread has ended."""
        done, left = asyncio.ensure_future(job.done.wait()), asyncio.ensure_future(gone())
        try:
            ended, _ = await asyncio.wait({done, left}, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if done not in ended:
                self._cancel(job, None if ended else f"it took longer than {self._timeout_s:g} s")
                await done
        finally:
            left.cancel()
            done.cancel()
            self._jobs.discard(job)
            if job.started_s is not None and job.reason is None:
                took_s = time.perf_counter() - job.started_s
                self._mean_s = REMEMBERED * self._mean_s + (1 - REMEMBERED) * took_s

    def _cancel(self, job: Job[State], reason: str | None) -> None:
        job.cancel(reason)
        message = f"the answer was not begun: {reason or 'nobody waits for it'}; ask again later"
        job.refuse(QueueFullError(message, max(1, math.ceil(self._mean_s))))

    def close(self) -> None:
        """Cancel everything, so that the server can stop; what is asked from now on is refused. Work that does not hear
        of it, such as loading a model, is not waited for."""
        self._places = 0
        for _ in range(self._running):
            self._to_do.put(None)  # each thread ends after the work before it
        for job in list(self._jobs):
            self._cancel(job, STOPS)
            asyncio.get_running_loop().call_later(PATIENCE_S, job.end, QueueFullError(STOPS, 1))
