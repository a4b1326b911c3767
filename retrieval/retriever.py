"""Question -> passages: dense and lexical search, fused, reranked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from indexes.errors import SettingError
from indexes.passages import Passage
from indexes.postings import Postings
from indexes.vectors import VectorIndex
from retrieval.conversation import Turn
from retrieval.encoders import Encoder
from retrieval.finder import Found
from retrieval.fusion import fuse
from retrieval.rerankers import Reranker

T = TypeVar("T")
EARLIER_WEIGHT = 0.5  # of the previous question, when a follow-up is scored


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
    """`candidates` are taken from each search and after fusion; all of them are reranked."""

    encoder: Encoder
    vectors: VectorIndex
    postings: Postings
    passages: Callable[[Sequence[int]], list[Passage]]
    reranker: Reranker | None
    candidates: int = 100

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """The `top_k` best passages; `turns` are what was said before, latest last."""
        return self.retrieve(question, top_k, turns[-1].question if turns else None)

    def retrieve(self, question: str, top_k: int = 5, earlier: str | None = None) -> list[Found]:
        """The `top_k` best passages; `earlier` is the question that this one follows up."""
        if top_k < 1:
            raise SettingError(f"top_k is {top_k}; it must be at least 1")
        return self.rank(question, earlier).reranked[:top_k]

    def rank(self, question: str, earlier: str | None = None) -> Rankings:
        """Every stage's ranking. A follow-up is also searched together with the question before it."""
        found = Rankings()
        asked = [question] if earlier is None else [question, f"{earlier} {question}"]
        dense = _timed(found, "dense", lambda: self._dense(asked))
        lexical = _timed(found, "lexical", lambda: [self.postings.search(text, self.candidates) for text in asked])
        found.dense, found.lexical = dense[0], lexical[0]
        fused = _timed(found, "fused", lambda: fuse([*dense, *lexical], self.candidates))
        found.fused = [row for row, _ in fused]
        found.reranked = _timed(found, "reranked", lambda: self._rerank(question, earlier, fused))
        return found

    def _dense(self, asked: list[str]) -> list[list[int]]:
        return [self.vectors.search(vector, self.candidates) for vector in self.encoder.encode_questions(asked)]

    def _rerank(self, question: str, earlier: str | None, fused: list[tuple[int, float]]) -> list[Found]:
        passages = self.passages([row for row, _ in fused])
        if self.reranker is None:
            scores = [score for _, score in fused]
        else:
            array = self.reranker(question, passages)
            if earlier is not None:
                array = array + EARLIER_WEIGHT * self.reranker(earlier, passages)
            scores = array.tolist()
        found = [Found(passage, score) for passage, score in zip(passages, scores, strict=True)]
        return sorted(found, key=lambda item: -item.score)


def _timed(found: Rankings, stage: str, call: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = call()
    found.seconds[stage] = time.perf_counter() - start
    return result
