"""The `Finder` seam: where the passages of an answer come from. Ours is `retrieval.retriever.Retriever`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from indexes.passages import Passage
from retrieval.conversation import Turn


@dataclass(frozen=True, slots=True)
class Found:
    """A passage and its score, comparable within one question only.

    relevance is the probability that the passage is about what was asked; None where nobody judged it.
    """

    passage: Passage
    score: float
    relevance: float | None = None


class Finder(Protocol):
    """Finds passages for a question."""

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """At most `top_k` passages, best first; `turns` are what was said before, latest last."""


@dataclass(frozen=True, slots=True)
class GivenPassages:
    """Passages that came with the question, in their order; all of them, whatever top_k is."""

    passages: tuple[Found, ...]

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """All passages."""
        return list(self.passages)


def given(texts: Iterable[str | tuple[str, str]]) -> GivenPassages:
    """Passages of texts, or of (id, text) pairs, best first; texts alone are called "1", "2" and so on."""
    found: list[Found] = []
    for row, item in enumerate(texts):
        name, text = (str(row + 1), item) if isinstance(item, str) else item
        found.append(Found(Passage(row, name, name, name, 0, text), 0.0))
    return GivenPassages(tuple(found))
