"""The queue before the model, with work whose pace the test sets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from app.api.queue import Queue, QueueFullError


async def forever() -> None:
    await asyncio.Event().wait()


class Slow:
    """Work that goes on until it is let go, or cancelled."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.ended = threading.Event()

    def __call__(self, cancelled: Callable[[], bool]) -> Iterator[str]:
        self.begun.set()
        yield "begun"
        while not self.go.wait(0.005):
            if cancelled():
                self.ended.set()
                yield "cancelled"
                return
        self.ended.set()
        yield "done"


async def texts(job: object) -> list[str]:
    return [state async for state in job.states()]  # type: ignore[attr-defined]


async def begun(work: Slow) -> None:
    assert await asyncio.to_thread(work.begun.wait, 5)


def test_work_is_done_one_after_the_other_in_its_order() -> None:
    order: list[int] = []

    def work(number: int) -> Callable[[Callable[[], bool]], Iterator[int]]:
        def run(_: Callable[[], bool]) -> Iterator[int]:
            order.append(number)
            yield number

        return run

    async def scenario() -> None:
        queue = Queue(1, 10, 60)
        jobs = [queue.begin(work(number), forever) for number in range(6)]
        assert [[state async for state in job.states()] for job in jobs] == [[number] for number in range(6)]
        queue.close()

    asyncio.run(scenario())
    assert order == [0, 1, 2, 3, 4, 5]


def test_one_more_than_there_is_room_for_is_refused_with_the_time_to_come_again() -> None:
    async def scenario() -> None:
        queue, work = Queue(1, 1, 60), Slow()
        running, waiting = queue.begin(work, forever), queue.begin(work, forever)
        with pytest.raises(QueueFullError, match="2 requests are being answered or wait") as caught:
            queue.begin(work, forever)
        assert caught.value.retry_after_s == 10  # two at the first guess of 5 s each
        work.go.set()
        assert (await texts(running))[-1] == (await texts(waiting))[-1] == "done"
        await asyncio.sleep(0.05)
        assert len(queue) == 0
        queue.close()

    asyncio.run(scenario())


def test_a_client_that_goes_frees_its_place_whether_it_was_answered_or_waited() -> None:
    async def scenario() -> None:
        queue, first, second = Queue(1, 5, 60), Slow(), Slow()
        gone = asyncio.Event()
        queue.begin(first, gone.wait)
        queue.begin(second, gone.wait)
        await begun(first)
        gone.set()
        assert await asyncio.to_thread(first.ended.wait, 5)
        await asyncio.sleep(0.05)
        assert (len(queue), second.begun.is_set()) == (0, False)
        queue.close()

    asyncio.run(scenario())


def test_a_reader_that_leaves_early_cancels_the_work() -> None:
    async def scenario() -> None:
        queue, work = Queue(1, 5, 60), Slow()
        states = queue.begin(work, forever).states()
        assert await anext(states) == "begun"
        await states.aclose()
        assert await asyncio.to_thread(work.ended.wait, 5)
        queue.close()

    asyncio.run(scenario())


def test_what_takes_too_long_is_cancelled_and_what_was_not_begun_is_refused() -> None:
    async def scenario() -> None:
        queue, work = Queue(1, 5, 0.1), Slow()
        running, waiting = queue.begin(work, forever), queue.begin(Slow(), forever)
        assert (await texts(running))[-1] == "cancelled"
        assert running.reason == "it took longer than 0.1 s"
        with pytest.raises(QueueFullError, match=r"not begun: it took longer than 0\.1 s"):
            await texts(waiting)
        queue.close()

    asyncio.run(scenario())


def test_what_work_raises_its_reader_raises() -> None:
    def failing(_: Callable[[], bool]) -> Iterator[str]:
        yield "begun"
        raise KeyError("broken")

    async def scenario() -> None:
        queue = Queue(1, 5, 60)
        with pytest.raises(KeyError, match="broken"):
            await texts(queue.begin(failing, forever))
        queue.close()

    asyncio.run(scenario())


def test_a_slow_reader_gets_the_newest_state_and_always_the_last() -> None:
    def counting(_: Callable[[], bool]) -> Iterator[int]:
        yield from range(1000)

    async def scenario() -> None:
        queue = Queue(1, 5, 60)
        job = queue.begin(counting, forever)
        await job.done.wait()
        assert [state async for state in job.states()] == [999]
        queue.close()

    asyncio.run(scenario())


def test_closing_ends_what_runs_and_refuses_what_waits_and_what_comes() -> None:
    async def scenario() -> None:
        queue, work = Queue(1, 5, 60), Slow()
        running, waiting = queue.begin(work, forever), queue.begin(work, forever)
        await begun(work)
        queue.close()
        assert (await texts(running))[-1] == "cancelled"
        with pytest.raises(QueueFullError, match="the server stops"):
            await texts(waiting)
        with pytest.raises(QueueFullError):
            queue.begin(work, forever)

    asyncio.run(scenario())
