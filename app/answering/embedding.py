"""Texts to vectors for people outside, a few at a time, so that answers are not kept waiting and a stop is obeyed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.encoders import Vectors

if TYPE_CHECKING:
    from app.answering.engine import Engine

AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Embedded:
    """Unit vectors (B, D), and how many tokens the encoder read for them."""

    vectors: Vectors
    tokens: int


def embed(engine: Engine, texts: Sequence[str], questions: bool, cancelled: Callable[[], bool]) -> Iterator[Embedded]:
    """Encode texts as the engine encodes passages, or questions; yields once, or not at all if cancelled before."""
    vectors: list[Vectors] = []
    tokens = 0
    for start in range(0, len(texts), AT_ONCE):
        if cancelled():
            return
        some = texts[start : start + AT_ONCE]
        dense, words = engine.encoder.encode_tokens(some)
        tokens += sum(map(len, words))
        vectors.append(engine.encoder.encode_questions(some) if questions else dense)
    yield Embedded(np.concatenate(vectors), tokens)
