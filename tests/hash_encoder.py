"""A deterministic encoder without a model: a text is the mean of its words' random vectors."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from retrieval.encoders import Vectors


def _word(word: str, dimension: int) -> Vectors:
    vector = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(dimension)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


class HashEncoder:
    """`encoded` lists every passage text it was given."""

    def __init__(self, model_id: str = "hash", dimension: int = 33) -> None:
        self.id = model_id
        self.dimension = dimension
        self.encoded: list[str] = []

    def encode_questions(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts)[0]

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        self.encoded.extend(texts)
        return self._encode(texts)[0]

    def encode_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        self.encoded.extend(texts)
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        tokens = [np.stack([_word(word, self.dimension) for word in ["", *text.lower().split()]]) for text in texts]
        means = np.stack([vectors.mean(axis=0) for vectors in tokens])
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32), tokens
