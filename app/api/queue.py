"""The queue before the model: requests are answered in threads, few at a time; a client that goes away frees its place.

Knows neither HTTP's messages nor the engine: work is a function that takes `cancelled` and yields growing states.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from indexes.errors import QuotewrightError

State = TypeVar("State")
Work = Callable[[Callable[[], bool]], Iterator[State]]

FIRST_GUESS_S = 5.0  # how long an answer takes, before any has been written
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

    def run(self) -> None:
        """Do the work, in a thread."""
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
        self._threads = ThreadPoolExecutor(running, "answers")
        self._jobs: dict[Job[object], Future[None]] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._mean_s = FIRST_GUESS_S

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
        future = self._threads.submit(job.run)
        self._jobs[job] = future  # type: ignore[index]  # a Job of any state
        watcher = asyncio.create_task(self._watch(job, future, gone))
        self._watchers.add(watcher)  # the loop holds tasks weakly
        watcher.add_done_callback(self._watchers.discard)
        return job

    async def _watch(self, job: Job[State], future: Future[None], gone: Callable[[], Awaitable[object]]) -> None:
        """Cancel the work if the client goes or the time is up; free its place when its thread has ended."""
        done, left = asyncio.ensure_future(job.done.wait()), asyncio.ensure_future(gone())
        try:
            ended, _ = await asyncio.wait({done, left}, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if done not in ended:
                self._cancel(job, future, None if ended else f"it took longer than {self._timeout_s:g} s")
                await done
        finally:
            left.cancel()
            done.cancel()
            del self._jobs[job]  # type: ignore[arg-type]
            if job.started_s is not None and job.reason is None:
                took_s = time.perf_counter() - job.started_s
                self._mean_s = REMEMBERED * self._mean_s + (1 - REMEMBERED) * took_s

    def _cancel(self, job: Job[State], future: Future[None], reason: str | None) -> None:
        job.cancel(reason)
        if future.cancel():  # no thread has begun it
            message = f"the answer was not begun: {reason or 'nobody waits for it'}; ask again later"
            job.end(QueueFullError(message, max(1, math.ceil(self._mean_s))))

    def close(self) -> None:
        """Cancel everything, so that the server can stop; what is asked from now on is refused."""
        self._places = 0
        for job, future in list(self._jobs.items()):
            self._cancel(job, future, "the server stops")
        self._threads.shutdown(wait=False)
