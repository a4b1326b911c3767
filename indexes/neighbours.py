"""The true neighbours of some vectors, by comparing them with every other, a block at a time; and recall of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class TrueNeighbours:
    """The `top_k` greatest inner products of each of `asked` (Q, D) with the vectors that have come by."""

    def __init__(self, asked: Vectors, top_k: int) -> None:
        self._asked, self._top_k = asked, top_k
        self._scores = np.zeros((len(asked), 0), np.float32)
        self.rows = np.zeros((len(asked), 0), np.int64)  # (Q, K), in no order

    def add(self, begin: int, vectors: Vectors) -> None:
        """The next vectors (R, D), the first of which is in row `begin`."""
        scores = self._asked @ vectors.T
        rows = np.broadcast_to(np.arange(begin, begin + len(vectors)), scores.shape)
        self._scores, self.rows = np.hstack([self._scores, scores]), np.hstack([self.rows, rows])
        best = np.argpartition(-self._scores, min(self._top_k, self._scores.shape[1]) - 1, axis=1)[:, : self._top_k]
        self._scores = np.take_along_axis(self._scores, best, 1)
        self.rows = np.take_along_axis(self.rows, best, 1)


def recall(found: Iterable[npt.ArrayLike], true: npt.NDArray[np.int64]) -> float:
    """The share of true rows (Q, K) that are among those found (Q, K)."""
    return float(np.mean([np.isin(rows, here).mean() for rows, here in zip(true, found, strict=True)]))
