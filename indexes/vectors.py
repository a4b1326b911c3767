"""Nearest neighbours by inner product, in FAISS: exact while a corpus is small, IVF-PQ once it can be trained.

The paper's setting (ngram_trie sec. 4.1) is IVF4096,PQ64 with nprobe 16. FAISS wants 39 training vectors per
cluster and 9,984 for 8-bit product quantisation; below that the index is flat. Quantisation loses recall,
so candidates are scored again with the stored vectors. Vectors count as they are stored, in half precision: a segment
that was merged finds what one that was built anew finds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from indexes.checked import CheckedFile
from indexes.live import Live

Vectors = npt.NDArray[np.float32]

PQ_TRAINING = 9984
PER_CLUSTER = 39
MAX_NLIST = 4096
NPROBE = 16
RESCORED = 4  # a quantised index returns this many times top_k candidates for rescoring
ADDED_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Layout:
    """nlist clusters and m bytes per vector; nlist 0 means flat."""

    nlist: int = 0
    m: int = 0

    def __str__(self) -> str:
        return f"IVF{self.nlist},PQ{self.m}" if self.nlist else "Flat"


def choose_layout(count: int, dimension: int) -> Layout:
    """The largest power of two of clusters that `count` vectors can train, at most the paper's 4,096."""
    m = next((m for m in (64, 48, 32, 16, 8) if dimension % m == 0), 0)
    if count < PQ_TRAINING or not m:
        return Layout()
    return Layout(min(MAX_NLIST, 1 << ((count // PER_CLUSTER).bit_length() - 1)), m)


def quantised(read: Callable[[Any], Vectors], count: int, dimension: int, seed: int = 0) -> tuple[Layout, bytes]:
    """The layout for `count` unit vectors and, unless it is flat, a trained and filled index as FAISS writes it.

    `read` gives the vectors (R, D) of any rows: they are never all in memory.
    """
    layout = choose_layout(count, dimension)
    if not layout.nlist:
        return layout, b""
    quantizer = faiss.IndexFlatIP(dimension)
    index: Any = faiss.IndexIVFPQ(quantizer, dimension, layout.nlist, layout.m, 8, faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(seed).permutation(count)[: max(PQ_TRAINING, 64 * layout.nlist)]
    index.train(read(sample))
    for begin in range(0, count, ADDED_AT_ONCE):
        index.add(read(slice(begin, min(count, begin + ADDED_AT_ONCE))))
    return layout, faiss.serialize_index(index).tobytes()


class SegmentVectors:
    """A segment's `stored` vectors (N, D) in half precision, and what `quantised` gave, or nothing."""

    def __init__(self, stored: CheckedFile, dimension: int, index: bytes = b"") -> None:
        self._stored = stored
        self._dimension = dimension
        self._count = stored.bytes // (2 * dimension)
        self._quantised: Any = faiss.deserialize_index(np.frombuffer(index, np.uint8)) if index else None

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
            data = self._stored.read(rows.start * size, rows.stop * size)
        else:
            data = b"".join(self._stored.read(row * size, (row + 1) * size) for row in rows)
        return np.frombuffer(data, np.float16).reshape(-1, self._dimension).astype(np.float32)

    def search(self, query: Vectors, top_k: int, live: Live) -> tuple[npt.NDArray[np.int64], Vectors]:
        """Live rows near `query` (D,), and their inner products with it: the best `top_k`, or more."""
        wanted = min(top_k if self._quantised is None else top_k * RESCORED, live.passages)
        if wanted < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        library: Any = faiss  # its own types leave out what it makes of arrays and names
        selector = None if live.whole else library.IDSelectorBitmap(np.packbits(live.rows, bitorder="little"))
        if self._quantised is None:
            chosen, index = library.SearchParameters(sel=selector), self._flat
        else:
            chosen, index = library.SearchParametersIVF(sel=selector, nprobe=NPROBE), self._quantised
        _, found = index.search(query[None].astype(np.float32), wanted, params=chosen)
        rows = found[0][found[0] >= 0]
        # not a matrix product: it may add in another order for another number of rows
        return rows, (self.stored(rows.tolist()) * query).sum(axis=1, dtype=np.float32)


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
