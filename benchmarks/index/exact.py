"""Exact search by comparing with every vector: what recall is measured against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from indexes.neighbours import TrueNeighbours, Vectors
from retrieval.indexing import Progress

AT_ONCE = 50_000


def nearest(
    vectors: npt.NDArray[np.float16], questions: Vectors, top_k: int, progress: Progress
) -> npt.NDArray[np.int64]:
    """The rows (Q, K) of the greatest inner products, in no order."""
    found = TrueNeighbours(questions, top_k)
    for at in range(0, len(vectors), AT_ONCE):
        progress("Searching exactly", at, len(vectors))
        found.add(at, vectors[at : at + AT_ONCE].astype(np.float32))
    progress("Searching exactly", len(vectors), len(vectors))
    return found.rows
