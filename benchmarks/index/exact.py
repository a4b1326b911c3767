"""Exact search by comparing with every vector: what recall is measured against."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from retrieval.indexing import Progress

AT_ONCE = 50_000


def nearest(
    vectors: npt.NDArray[np.float16], questions: npt.NDArray[np.float32], top_k: int, progress: Progress
) -> npt.NDArray[np.int64]:
    """The rows (Q, K) of the greatest inner products, in no order."""
    scores, rows = np.zeros((len(questions), 0), np.float32), np.zeros((len(questions), 0), np.int64)
    for at in range(0, len(vectors), AT_ONCE):
        progress("Searching exactly", at, len(vectors))
        here = questions @ vectors[at : at + AT_ONCE].astype(np.float32).T
        scores = np.concatenate([scores, here], axis=1)
        rows = np.concatenate([rows, np.broadcast_to(np.arange(at, at + here.shape[1]), here.shape)], axis=1)
        best = np.argpartition(-scores, min(top_k, scores.shape[1]) - 1, axis=1)[:, :top_k]
        scores, rows = np.take_along_axis(scores, best, 1), np.take_along_axis(rows, best, 1)
    progress("Searching exactly", len(vectors), len(vectors))
    return rows


def recall(found: Iterable[npt.ArrayLike], true: npt.NDArray[np.int64]) -> float:
    """The share of true rows (Q, K) that are among those found (Q, K)."""
    return float(np.mean([np.isin(rows, here).mean() for rows, here in zip(true, found, strict=True)]))
