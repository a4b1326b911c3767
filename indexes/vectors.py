"""Nearest neighbours by inner product, in FAISS: exact while a corpus is small, IVF-PQ once it can be trained.

Quantisation loses recall, so candidates are scored again with the stored vectors. Vectors count as they are stored, in
half precision: a segment that was merged finds what one that was built anew finds.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from indexes.checked import CheckedFile
from indexes.live import Live
from indexes.neighbours import Vectors
from indexes.quantisation import FLAT, TrainedIndex

_FAISS: Any = faiss  # its own types leave out what it makes of arrays and names


class SegmentVectors:
    """A segment's `stored` vectors (N, D) in half precision, and what `quantised` made of them, or nothing."""

    def __init__(self, stored: CheckedFile, dimension: int, made: TrainedIndex = FLAT) -> None:
        self._stored = stored
        self._dimension = dimension
        self._count = stored.bytes // (2 * dimension)
        self.rescored = made.rescored
        self._quantised: Any = faiss.deserialize_index(np.frombuffer(made.index, np.uint8)) if made.index else None

    @functools.cached_property
    def _flat(self) -> Any:
        """Exact search; made when it is first needed, for it reads every vector."""
        index = faiss.IndexFlatIP(self._dimension)
        index.add(self.stored(range(self._count)))
        return index

    def stored(self, rows: Sequence[int]) -> Vectors:
        """The vectors (R, D) in these rows."""
        size = 2 * self._dimension
        if isinstance(rows, range) and rows.step == 1:
            data = np.frombuffer(self._stored.read(rows.start * size, rows.stop * size), np.uint8)
        else:
            data = self._stored.rows(np.asarray(rows, np.int64), size)
        return data.view(np.float16).reshape(-1, self._dimension).astype(np.float32)

    def search(self, query: Vectors, top_k: int, live: Live) -> tuple[npt.NDArray[np.int64], Vectors]:
        """Live rows near `query` (D,), and their inner products with it: the best `top_k`, or more."""
        wanted = min(top_k if self._quantised is None else top_k * self.rescored, live.passages)
        if wanted < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        selector = None if live.whole else _FAISS.IDSelectorBitmap(live.bitmap)
        with _one_thread():
            asked = query[None].astype(np.float32)
            if self._quantised is None:
                _, found = self._flat.search(asked, wanted, params=_FAISS.SearchParameters(sel=selector))
            else:
                chosen = _FAISS.SearchParametersIVF(sel=selector, nprobe=self._quantised.nprobe)
                _, found = self._quantised.search(asked, wanted, params=chosen)
            return self._scored(asked, found[0][found[0] >= 0])

    def _scored(self, asked: Vectors, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Vectors]:
        """These rows, best first, and their inner products: a row's is the same, whatever the others are."""
        exact = _FAISS.IndexScalarQuantizer(self._dimension, _FAISS.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        exact.add_sa_codes(self._stored.rows(rows, 2 * self._dimension))
        scores, order = exact.search(asked, len(rows))
        return rows[order[0]], scores[0]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """FAISS divides no single query; but on a busy machine it would wait for threads that have nothing to do."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


class VectorIndex:
    """The vectors of an index: its segments', less what was deleted from them."""

    def __init__(self, parts: Sequence[tuple[SegmentVectors, Live]]) -> None:
        self._parts = parts

    def search(self, query: Vectors, top_k: int) -> list[int]:
        """Rows of the `top_k` vectors with the greatest inner product with `query` (D,), best first."""
        rows, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
        for vectors, live in self._parts:
            found, score = vectors.search(query, top_k, live)
            rows.append(live.offset + found)
            scores.append(score)
        every = np.concatenate(rows)
        order = np.lexsort((every, -np.concatenate(scores)))
        return [int(row) for row in every[order][: max(0, top_k)]]

    def stored(self, rows: Sequence[int]) -> Vectors:
        """The vectors (R, D) in these rows, of which there must be one at least."""
        found: list[Vectors] = []
        for row in rows:
            vectors, live = next(part for part in reversed(self._parts) if part[1].offset <= row)
            found.append(vectors.stored([row - live.offset]))
        return np.concatenate(found)
