"""Trains and fills the IVF-PQ index of a large segment, and tries how many clusters its searches must visit.

The paper's setting (ngram_trie sec. 4.1) is IVF4096,PQ64 with nprobe 16. FAISS wants 39 training vectors per cluster
and 9,984 for 8-bit product quantisation; below that the index is flat. How many of the true neighbours 16 clusters hold
depends on the vectors: where they hold too few, more are visited. FAISS keeps that number with the index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

_FAISS: Any = faiss  # its own types leave out what it makes of arrays and names

PQ_TRAINING = 9984
PER_CLUSTER, PER_CLUSTER_USED = 39, 64  # training vectors: at least, and at most
MAX_NLIST = 4096
NPROBE = 16
RESCORED = 4  # times top_k are the candidates of a search
ADDED_AT_ONCE = 1 << 16
TRIED, TRIED_TOP_K, RECALL = 100, 100, 0.97  # questions, neighbours of each, and how many are to be found
MOST_SCANNED = 1 << 17  # codes that a search compares: a few milliseconds


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
    order = np.random.default_rng(seed).permutation(count)
    index.train(read(order[: max(PQ_TRAINING, PER_CLUSTER_USED * layout.nlist)]))
    trial = _Trial(read(order[-TRIED:]))
    for begin in range(0, count, ADDED_AT_ONCE):
        vectors = read(slice(begin, min(count, begin + ADDED_AT_ONCE)))
        index.add(vectors)
        trial.add(begin, vectors)
    index.nprobe = trial.enough_probes(index)
    return layout, faiss.serialize_index(index).tobytes()


class _Trial:
    """Some of an index's own vectors (T, D) as questions, and their true neighbours as the vectors come by."""

    def __init__(self, asked: Vectors) -> None:
        self._asked = asked
        self._rows = np.zeros((len(asked), 0), np.int64)
        self._scores = np.zeros((len(asked), 0), np.float32)

    def add(self, begin: int, vectors: Vectors) -> None:
        """The next vectors (R, D), the first of which is in row `begin`."""
        scores = self._asked @ vectors.T
        rows = np.broadcast_to(np.arange(begin, begin + len(vectors)), scores.shape)
        self._scores, self._rows = np.hstack([self._scores, scores]), np.hstack([self._rows, rows])
        best = np.argpartition(-self._scores, min(TRIED_TOP_K, self._scores.shape[1]) - 1, axis=1)[:, :TRIED_TOP_K]
        self._scores = np.take_along_axis(self._scores, best, 1)
        self._rows = np.take_along_axis(self._rows, best, 1)

    def enough_probes(self, index: Any) -> int:
        """The fewest, by doubling, that find RECALL of the neighbours; NPROBE at least, MOST_SCANNED at most."""
        nprobe = NPROBE
        while 2 * nprobe <= index.nlist and 2 * nprobe * index.ntotal <= MOST_SCANNED * index.nlist:
            chosen = _FAISS.SearchParametersIVF(nprobe=nprobe)
            _, found = index.search(self._asked, TRIED_TOP_K * RESCORED, params=chosen)
            hits = [np.isin(rows, near).mean() for rows, near in zip(self._rows, found, strict=True)]
            if np.mean(hits) >= RECALL:
                break
            nprobe *= 2
        return nprobe
