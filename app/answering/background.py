"""Has an answer written in a thread of its own, whoever reads it.

So the model is not held by a reader who is slow, or who reads two answers in turn, and no event loop waits for it. A
reader that stops cancels the answer. Knows nothing of what an answer is.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import TypeVar

T = TypeVar("T")
Begin = Callable[[Callable[[], bool]], Iterator[T]]  # it is told whether it is cancelled


def in_background(begin: Begin[T]) -> Generator[T]:
    """What `begin` yields, which runs on ahead; raises what it raises."""
    made: queue.SimpleQueue[T | _End] = queue.SimpleQueue()
    stopped = threading.Event()
    _start(begin, stopped, made.put)
    try:
        while not isinstance(item := made.get(), _End):
            yield item
        item.check()
    finally:
        stopped.set()


async def in_background_async(begin: Begin[T]) -> AsyncGenerator[T]:
    """The same for coroutines."""
    loop = asyncio.get_running_loop()
    made: asyncio.Queue[T | _End] = asyncio.Queue()
    stopped = threading.Event()

    def put(item: T | _End) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody reads
            loop.call_soon_threadsafe(made.put_nowait, item)

    _start(begin, stopped, put)
    try:
        while not isinstance(item := await made.get(), _End):
            yield item
        item.check()
    finally:
        stopped.set()


class _End:
    """Nothing follows, for there is no more or for an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self._error is not None:
            raise self._error


def _start(begin: Begin[T], stopped: threading.Event, put: Callable[[T | _End], None]) -> None:
    def cancelled() -> bool:
        return stopped.is_set() or not threading.main_thread().is_alive()  # the program does not wait for an answer

    def run() -> None:
        try:
            for item in begin(cancelled):
                put(item)
        except BaseException as error:  # the reader's, whatever it is
            put(_End(error))
        else:
            put(_End())

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="answer").start()
