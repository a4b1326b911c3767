"""Trains and fills the IVF-PQ index of a large segment, and tries how far its searches must look.

The paper's setting (ngram_trie sec. 4.1) is IVF4096,PQ64 with nprobe 16. FAISS wants 39 training vectors per cluster
and 9,984 for 8-bit product quantisation; below that the index is flat. How many of the true neighbours 16 clusters
hold, and the best codes in them, depends on the vectors: where these are too few, a search visits more clusters and
scores more candidates again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from indexes.neighbours import TrueNeighbours, Vectors, recall

_FAISS: Any = faiss  # its own types leave out what it makes of arrays and names

PQ_TRAINING = 9984
PER_CLUSTER, PER_CLUSTER_USED = 39, 64  # training vectors: at least, and at most
MAX_NLIST = 4096
NPROBE = 16
TIMES_TOP_K = (4, 10, 20)  # candidates of a search that are scored again
ADDED_AT_ONCE = 1 << 16
TRIED, TRIED_TOP_K, RECALL = 100, 100, 0.97  # questions, neighbours of each, and how many are to be found
MOST_SCANNED = 1 << 18  # codes that a search compares: about ten milliseconds


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


@dataclass(frozen=True, slots=True)
class TrainedIndex:
    """An index as FAISS writes it, its nprobe in it, or nothing where the layout is flat; `rescored` times the wanted
    neighbours are to be taken from it and scored again."""

    layout: Layout = field(default_factory=Layout)
    index: bytes = b""
    rescored: int = TIMES_TOP_K[0]


FLAT = TrainedIndex()


def quantised(read: Callable[[Any], Vectors], count: int, dimension: int, seed: int = 0) -> TrainedIndex:
    """A trained and filled index of `count` unit vectors, unless they are too few.

    `read` gives the vectors (R, D) of any rows: they are never all in memory.
    """
    layout = choose_layout(count, dimension)
    if not layout.nlist:
        return FLAT
    quantizer = faiss.IndexFlatIP(dimension)
    index: Any = faiss.IndexIVFPQ(quantizer, dimension, layout.nlist, layout.m, 8, faiss.METRIC_INNER_PRODUCT)
    order = np.random.default_rng(seed).permutation(count)
    index.train(read(order[: max(PQ_TRAINING, PER_CLUSTER_USED * layout.nlist)]))
    asked = read(order[-TRIED:])  # some of its own vectors as questions
    true = TrueNeighbours(asked, TRIED_TOP_K)
    for begin in range(0, count, ADDED_AT_ONCE):
        vectors = read(slice(begin, min(count, begin + ADDED_AT_ONCE)))
        index.add(vectors)
        true.add(begin, vectors)
    index.nprobe, rescored = _enough(index, asked, true.rows)
    return TrainedIndex(layout, faiss.serialize_index(index).tobytes(), rescored)


def _enough(index: Any, asked: Vectors, true: npt.NDArray[np.int64]) -> tuple[int, int]:
    """The fewest probes, by doubling, and the least of TIMES_TOP_K that find RECALL of the neighbours.

    Where none do: the most of both, as far as MOST_SCANNED lets it.
    """
    nprobe = NPROBE
    while True:
        chosen = _FAISS.SearchParametersIVF(nprobe=nprobe)
        _, found = index.search(asked, TRIED_TOP_K * TIMES_TOP_K[-1], params=chosen)
        for rescored in TIMES_TOP_K:
            if recall(found[:, : TRIED_TOP_K * rescored], true) >= RECALL:
                return nprobe, rescored
        if 2 * nprobe > index.nlist or 2 * nprobe * index.ntotal > MOST_SCANNED * index.nlist:
            return nprobe, TIMES_TOP_K[-1]
        nprobe *= 2
