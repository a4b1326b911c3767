"""What one question may choose for itself, and what an answer is written from. Values only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.answering.answers import Answer
from app.answering.prompt import Message
from decoding.loop import never
from decoding.sampling import Sampling
from indexes.errors import SettingError
from retrieval.conversation import Turn

MOST_STOPS = 16


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Choices of one question; None leaves a choice to the settings.

    stop are texts at which the answer ends, before them. Raises SettingError for numbers and texts that cannot be.
    """

    drafter: str | None = None
    max_nodes: int | None = None
    max_new_tokens: int | None = None
    top_k: int | None = None
    sampling: Sampling | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, least in (
            ("max_nodes", self.max_nodes, 0),
            ("max_new_tokens", self.max_new_tokens, 1),
            ("top_k", self.top_k, 1),
        ):
            if value is not None and value < least:
                raise SettingError(f"{name} is {value}; it must be at least {least}")
        if len(self.stop) > MOST_STOPS or not all(self.stop):
            raise SettingError(f"stop is {list(self.stop)!r}; give at most {MOST_STOPS} texts, none of them empty")


AS_SET = AnswerOptions()


@dataclass(frozen=True, slots=True)
class Task:
    """An answer to write: `state` holds the question and the passages that it is written from.

    The model is told `messages`; where there are none, the passages, the turns before and the question. `folder` is
    that of the index asked, if it is one of ours. `cancelled` is asked before every forward pass; `person` says whose
    earlier answers may help; `start` is when the question came, on time.perf_counter's clock.
    """

    state: Answer
    options: AnswerOptions = AS_SET
    turns: Sequence[Turn] = ()
    messages: Sequence[Message] | None = None
    folder: Path | None = None
    cancelled: Callable[[], bool] = never
    person: str | None = None
    start: float = field(default_factory=time.perf_counter)
