from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from app.answering.background import in_background, in_background_async

WAIT_S = 20


class Counter:
    """Counts until it is cancelled; `ended` is set after that."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.thread: int | None = None

    def __call__(self, cancelled: Callable[[], bool]) -> Iterator[int]:
        self.thread = threading.get_ident()
        number = 0
        while not cancelled():
            yield number
            number += 1
            threading.Event().wait(0.001)
        self.ended.set()


def three(cancelled: Callable[[], bool]) -> Iterator[int]:
    yield from (1, 2, 3)


def failing(cancelled: Callable[[], bool]) -> Iterator[int]:
    yield 1
    raise ValueError("no more")


def test_everything_comes_in_its_order() -> None:
    assert list(in_background(three)) == [1, 2, 3]


async def test_everything_comes_to_a_coroutine() -> None:
    assert [item async for item in in_background_async(three)] == [1, 2, 3]


def test_an_error_comes_after_what_was_made_before_it() -> None:
    made = in_background(failing)
    assert next(made) == 1
    with pytest.raises(ValueError, match="no more"):
        next(made)


async def test_an_error_comes_to_a_coroutine() -> None:
    made = in_background_async(failing)
    assert await anext(made) == 1
    with pytest.raises(ValueError, match="no more"):
        await anext(made)


def test_a_reader_that_stops_cancels_the_work() -> None:
    counter = Counter()
    with closing(in_background(counter)) as made:
        assert next(made) == 0
    assert counter.ended.wait(WAIT_S)
    assert counter.thread != threading.get_ident()


def test_a_reader_that_is_gone_cancels_the_work() -> None:
    counter = Counter()
    for _ in in_background(counter):
        break
    assert counter.ended.wait(WAIT_S)


async def test_a_coroutine_that_stops_cancels_the_work() -> None:
    counter = Counter()
    async with aclosing(in_background_async(counter)) as made:
        assert await anext(made) == 0
    assert await asyncio.to_thread(counter.ended.wait, WAIT_S)


async def test_a_task_that_is_cancelled_cancels_the_work() -> None:
    counter = Counter()

    async def read() -> None:
        async for _ in in_background_async(counter):
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(counter.ended.wait, WAIT_S)


def test_work_goes_on_though_nobody_reads() -> None:
    done = threading.Event()

    def work(cancelled: Callable[[], bool]) -> Iterator[int]:
        yield from (1, 2)
        done.set()

    made = in_background(work)
    next(made)
    assert done.wait(WAIT_S)
    assert list(made) == [2]


def test_a_program_that_ends_does_not_wait_for_what_nobody_reads() -> None:
    program = (
        "from tests.app.answering.test_background import Counter; from app.answering.background import in_background\n"
        "made = in_background(Counter()); print(next(made))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
