"""Question -> passages: dense and lexical search, fused, reranked, and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from indexes.errors import SettingError
from indexes.passages import Passage
from indexes.postings import Postings
from indexes.vectors import VectorIndex
from retrieval.conversation import Turn
from retrieval.encoders import Encoder
from retrieval.finder import Found
from retrieval.follow_ups import Asked, in_context
from retrieval.fusion import fuse
from retrieval.relevance import Judge
from retrieval.rerankers import Reranker

T = TypeVar("T")


@dataclass(slots=True)
class Rankings:
    """What each stage found, best first, and how long it took in seconds."""

    dense: list[int] = field(default_factory=list)
    lexical: list[int] = field(default_factory=list)
    fused: list[int] = field(default_factory=list)
    reranked: list[Found] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retriever:
    """`candidates` are taken from each search and after fusion; all of them are reranked.

    `judge` says how likely a found passage is about the question; without one nobody knows.
    """

    encoder: Encoder
    vectors: VectorIndex
    postings: Postings
    passages: Callable[[Sequence[int]], list[Passage]]
    reranker: Reranker | None
    candidates: int = 100
    judge: Judge | None = None

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """The `top_k` best passages; `turns` are what was said before, latest last."""
        if top_k < 1:
            raise SettingError(f"top_k is {top_k}; it must be at least 1")
        asked = in_context(question, turns)
        return self._judged(asked, self.rank(asked).reranked[:top_k])

    def rank(self, asked: Asked) -> Rankings:
        """Every stage's ranking; `dense` and `lexical` are those of the first query."""
        found = Rankings()
        dense = _timed(found, "dense", lambda: self._dense(asked.queries))
        lexical = _timed(
            found, "lexical", lambda: [self.postings.search(text, self.candidates) for text in asked.queries]
        )
        found.dense, found.lexical = dense[0], lexical[0]
        fused = _timed(found, "fused", lambda: fuse([*dense, *lexical], self.candidates))
        found.fused = [row for row, _ in fused]
        found.reranked = _timed(found, "reranked", lambda: self._rerank(asked, fused))
        return found

    def _dense(self, queries: Sequence[str]) -> list[list[int]]:
        return [self.vectors.search(vector, self.candidates) for vector in self.encoder.encode_questions(queries)]

    def _rerank(self, asked: Asked, fused: list[tuple[int, float]]) -> list[Found]:
        passages = self.passages([row for row, _ in fused])
        scores = np.array([score for _, score in fused], np.float32)
        if self.reranker is not None:
            scores = np.zeros(len(passages), np.float32)
            for text, weight in asked.scored:
                scores = scores + weight * self.reranker(text, passages)
        found = [Found(passage, score) for passage, score in zip(passages, scores.tolist(), strict=True)]
        return sorted(found, key=lambda item: -item.score)

    def _judged(self, asked: Asked, found: list[Found]) -> list[Found]:
        """A passage may be about the question, or about what the question goes back to."""
        if self.judge is None or not found:
            return found
        passages = [item.passage for item in found]
        judged = [self.judge(text, passages) for text in dict.fromkeys((asked.question, asked.whole))]
        known = [chances for chances in judged if chances is not None]
        if len(known) < len(judged):
            return found
        best = np.max(known, axis=0).tolist()
        return [replace(item, relevance=chance) for item, chance in zip(found, best, strict=True)]


def _timed(found: Rankings, stage: str, call: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = call()
    found.seconds[stage] = time.perf_counter() - start
    return result
