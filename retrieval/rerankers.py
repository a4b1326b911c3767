"""The `Reranker` seam: late interaction over stored per-token vectors, or a cross-encoder through FlagEmbedding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from indexes.errors import ModelError
from indexes.passages import Passage
from indexes.postings import Postings
from indexes.token_vectors import SCALE, Quantised, TokenVectors, quantise
from retrieval.encoders import Encoder

Scores = npt.NDArray[np.float32]

LEXICAL_WEIGHT = 0.02


class Reranker(Protocol):
    """(question, passages) -> scores (P,), greater is better."""

    def __call__(self, question: str, passages: Sequence[Passage]) -> Scores:
        """Score passages for a question."""


class LateInteractionReranker:
    """ColBERT's MaxSim plus BM25: for each token of the question the best cosine with a passage's tokens, averaged.

    A token that finds a good match in every candidate says little: it weighs 1 - its mean over the candidates.
    MiniLM blurs names and numbers, so LEXICAL_WEIGHT times the BM25 score is added (chosen on held-out questions,
    docs/lab-notes.md). Reads the per-token vectors stored with an index; passages of an index without them are
    encoded here.
    """

    def __init__(self, encoder: Encoder, stored: TokenVectors | None, postings: Postings | None = None) -> None:
        self._encoder = encoder
        self._stored = stored
        self._postings = postings

    def _tokens(self, passages: Sequence[Passage]) -> list[Quantised]:
        if self._stored is not None:
            return [self._stored.of(passage.row) for passage in passages]
        _, tokens = self._encoder.encode_tokens([passage.text for passage in passages])
        return [quantise(vectors) for vectors in tokens]

    def __call__(self, question: str, passages: Sequence[Passage]) -> Scores:
        """Scores (P,): cosines in [-1, 1] plus the lexical share."""
        if not passages:
            return np.zeros(0, np.float32)
        _, (asked,) = self._encoder.encode_tokens([question])
        tokens = self._tokens(passages)
        cosines = np.concatenate(tokens).astype(np.float32) @ asked.T / SCALE
        begins = np.cumsum([0, *(len(vectors) for vectors in tokens[:-1])])
        best = np.maximum.reduceat(cosines, begins, axis=0)
        weights = np.maximum(1 - best.mean(axis=0), 1e-6)
        scores = best @ weights / weights.sum()
        if self._postings is not None:
            scores = scores + LEXICAL_WEIGHT * self._postings.scores(question, [passage.row for passage in passages])
        return np.asarray(scores, np.float32)


class CrossEncoderReranker:
    """bge-reranker-v2-m3 and its like, in their own library; scores are probabilities."""

    def __init__(self, folder: Path, device: str) -> None:
        from FlagEmbedding import FlagReranker

        try:
            self._model: Any = FlagReranker(
                str(folder), use_fp16=device.startswith("cuda"), devices=[device], normalize=True, batch_size=16
            )
        except Exception as error:  # the library lets whatever its parts raise through
            raise ModelError(f"no cross-encoder could be loaded from {folder}: {error}") from error

    def __call__(self, question: str, passages: Sequence[Passage]) -> Scores:
        """Scores (P,) in [0, 1]."""
        if not passages:
            return np.zeros(0, np.float32)
        scores = self._model.compute_score([(question, passage.text) for passage in passages])
        return np.asarray(scores, np.float32).reshape(len(passages))
