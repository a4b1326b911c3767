"""The `Reranker` seam: late interaction over stored per-token vectors, or a cross-encoder through FlagEmbedding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from indexes.passages import Passage
from indexes.token_vectors import SCALE, Quantised, TokenVectors, quantise
from retrieval.encoders import Encoder

Scores = npt.NDArray[np.float32]


class Reranker(Protocol):
    """(question, passages) -> scores (P,), greater is better."""

    def __call__(self, question: str, passages: Sequence[Passage]) -> Scores:
        """Score passages for a question."""


class LateInteractionReranker:
    """Mean over the question's tokens of the best cosine with a passage's tokens (ColBERT's MaxSim).

    Reads the per-token vectors stored with an index; passages of an index without them are encoded here.
    """

    def __init__(self, encoder: Encoder, stored: TokenVectors | None) -> None:
        self._encoder = encoder
        self._stored = stored

    def _tokens(self, passages: Sequence[Passage]) -> list[Quantised]:
        if self._stored is not None:
            return [self._stored.of(passage.row) for passage in passages]
        _, tokens = self._encoder.encode_tokens([passage.text for passage in passages])
        return [quantise(vectors) for vectors in tokens]

    def __call__(self, question: str, passages: Sequence[Passage]) -> Scores:
        """Scores (P,) in [-1, 1]."""
        if not passages:
            return np.zeros(0, np.float32)
        _, (asked,) = self._encoder.encode_tokens([question])
        tokens = self._tokens(passages)
        cosines = np.concatenate(tokens).astype(np.float32) @ asked.T / SCALE
        begins = np.cumsum([0, *(len(vectors) for vectors in tokens[:-1])])
        return np.asarray(np.maximum.reduceat(cosines, begins, axis=0).mean(axis=1), np.float32)


class CrossEncoderReranker:
    """bge-reranker-v2-m3 and its like, in their own library; scores are probabilities."""

    def __init__(self, folder: Path, device: str) -> None:
        from FlagEmbedding import FlagReranker

        self._model: Any = FlagReranker(
            str(folder), use_fp16=device.startswith("cuda"), devices=[device], normalize=True, batch_size=16
        )

    def __call__(self, question: str, passages: Sequence[Passage]) -> Scores:
        """Scores (P,) in [0, 1]."""
        if not passages:
            return np.zeros(0, np.float32)
        scores = self._model.compute_score([(question, passage.text) for passage in passages])
        return np.asarray(scores, np.float32).reshape(len(passages))
