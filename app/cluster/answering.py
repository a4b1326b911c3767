"""A batch run's questions answered on Ray: a pool of actors, each with its own engine, or asking a server.

Rows come back as they are answered, in any order; the run where the command was given keeps them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from app.answering.loading import silent
from app.answering.sources import load_finder
from app.batch.answering import Answerer, Row, is_remote, settings_of
from app.batch.questions import Question
from app.cluster.engines import Like, share_for
from app.cluster.machines import Share
from app.cluster.session import RayChoice, ray_session
from app.cluster.spreading import Work, spread
from indexes.files import current_generation


@dataclass(frozen=True, slots=True)
class RayAnswerer(Answerer):
    """An answerer that has actors answer, each like this one. Ray ends with `held`."""

    choice: RayChoice = field(default_factory=RayChoice)
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    say: Callable[[str], None] = silent

    def prepare(self) -> None:
        """Have Ray; its actors load the models."""
        self.held.enter_context(ray_session(self.choice.address, self.say))

    def rows(self, waiting: Iterator[tuple[int, Question | Row]]) -> Iterator[Row]:
        """The row of each question, as it is answered."""
        asked: list[tuple[int, Question]] = []
        for number, item in waiting:
            if isinstance(item, Question):
                asked.append((number, item))
            else:
                yield item
        if not asked:
            return
        index = self.index if isinstance(self.index, Path) else None
        make = functools.partial(_answering, Like.of(self.engine), _facts(index, self.engine), index, self.compare)
        for _, row in spread(make, asked, self._share, self.say, ordered=False):
            yield row

    def _share(self) -> Share:
        folders = [self.engine.encoder_folder, *([] if is_remote(self.engine) else [self.engine.model_folder])]
        return share_for(self.engine, self.choice, folders)


def _facts(index: Path | None, engine: Engine) -> dict[str, Any]:
    """What the answers of an engine depend on."""
    return settings_of(engine) | ({"index": current_generation(index)[1]} if index else {})


def _answering(like: Like, expected: dict[str, Any], index: Path | None, compare: bool) -> Work:
    engine = like.engine(functools.partial(_facts, index), expected)
    engine.load()
    finder = load_finder(engine.settings.finder) if engine.settings.finder else index
    answerer = Answerer(engine, finder, compare)
    return lambda asked: answerer.row(*asked)
