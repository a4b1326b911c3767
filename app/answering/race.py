"""Two lanes, one question: plain decoding and drafting write the same answer, each on a clock of its own.

There is one model, so the lanes take turns: whichever has used less time goes on for a moment, and the other one's keys
and values lie aside meanwhile. A lane's clock runs only while it computes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.answering.answers import Answer
from app.answering.asking import AS_SET, AnswerOptions
from decoding.loop import never
from decoding.target import Snapshot, TargetModel
from indexes.errors import SettingError
from retrieval.conversation import Turn
from retrieval.finder import Finder

if TYPE_CHECKING:
    from app.answering.engine import Engine

PLAIN = "plain"
TURN_S = 0.15  # how long a lane goes on before the other one may


@dataclass(frozen=True, slots=True)
class Lane:
    """How far one of the two is; elapsed_s is its own time, retrieval apart."""

    answer: Answer
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RaceState:
    """Both lanes after one more forward pass of one of them."""

    plain: Lane
    drafted: Lane

    @property
    def speed_up(self) -> float | None:
        """How many times the plain lane's time the drafted one saved; None before both have ended."""
        ended = self.plain.answer.finished and self.drafted.answer.finished and self.drafted.elapsed_s
        return self.plain.elapsed_s / self.drafted.elapsed_s if ended else None


class _Runner:
    """One lane's answer being written, and its part of the target's cache while the other one runs."""

    def __init__(self, answers: Generator[Answer], target: TargetModel) -> None:
        self._answers = answers
        self._target = target
        self._aside: Snapshot | None = None
        self.lane = Lane(next(answers))

    def run(self) -> Iterator[Lane]:
        """Go on for a moment, yielding after each pass."""
        if self._aside is not None:
            self._target.restore(self._aside)
        begin = self.lane.elapsed_s
        while self.lane.answer.finished is None and self.lane.elapsed_s - begin < TURN_S:
            start = time.perf_counter()
            answer = next(self._answers)
            elapsed_s = self.lane.elapsed_s + time.perf_counter() - start
            first_s = self.lane.answer.stats.time_to_first_token_s or elapsed_s
            stats = replace(answer.stats, total_s=elapsed_s, time_to_first_token_s=first_s)
            self.lane = Lane(replace(answer, stats=stats), elapsed_s)
            yield self.lane
        self._aside = self._target.snapshot()

    def close(self) -> None:
        """Stop writing."""
        self._answers.close()


def race(
    engine: Engine,
    question: str,
    source: Path | Finder,
    turns: Sequence[Turn] = (),
    options: AnswerOptions = AS_SET,
    cancelled: Callable[[], bool] = never,
) -> Iterator[RaceState]:
    """Write the answer twice, plain and with the drafter of the options, yielding the state of both.

    Neither learns from the other, nor from anybody's earlier answers. Raises QuotewrightError as `Engine.ask` does.
    """
    if engine.settings.engine != "local":
        raise SettingError("a race needs a model in this process; leave out --engine")
    task = engine.task(question, source, turns, options, cancelled)
    drafters = (options.drafter, engine.settings.drafter, "blend")
    drafter = next(name for name in drafters if name not in (None, PLAIN))
    lanes = [replace(task.state, stats=replace(task.state.stats, drafter=name)) for name in (PLAIN, drafter)]
    if task.state.finished:  # there is nothing to write it from
        yield RaceState(*map(Lane, lanes))
        return
    with engine.turn_to_write(cancelled) as may_write:
        if not may_write:
            plain, drafted = (Lane(replace(state, finished="cancelled")) for state in lanes)
            yield RaceState(plain, drafted)
            return
        runners = [_Runner(engine.write(replace(task, state=state)), engine.target) for state in lanes]
        try:
            yield RaceState(*(runner.lane for runner in runners))
            while running := [runner for runner in runners if runner.lane.answer.finished is None]:
                for _ in min(running, key=lambda one: one.lane.elapsed_s).run():
                    yield RaceState(*(runner.lane for runner in runners))
        finally:
            for runner in runners:
                runner.close()
