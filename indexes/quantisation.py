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

Vectors = npt.NDArray[np.float32]

_FAISS: Any = faiss  # its own types leave out what it makes of arrays and names

PQ_TRAINING = 9984
PER_CLUSTER, PER_CLUSTER_USED = 39, 64  # training vectors: at least, and at most
MAX_NLIST = 4096
ROTATED_FROM, ROTATION_ROUNDS = 8, 10  # dimensions per byte that OPQ helps from, and how long it is trained
NPROBE = 16
RESCORED = (4, 10, 20)  # times top_k are the candidates of a search
ADDED_AT_ONCE = 1 << 16
TRIED, TRIED_TOP_K, RECALL = 100, 100, 0.97  # questions, neighbours of each, and how many are to be found
MOST_SCANNED = 1 << 18  # codes that a search compares: about ten milliseconds


@dataclass(frozen=True, slots=True)
class Layout:
    """nlist clusters and m bytes per vector, rotated before (OPQ) or not; nlist 0 means flat."""

    nlist: int = 0
    m: int = 0
    rotated: bool = False

    def __str__(self) -> str:
        rotation = f"OPQ{self.m}," if self.rotated else ""
        return f"{rotation}IVF{self.nlist},PQ{self.m}" if self.nlist else "Flat"


def choose_layout(count: int, dimension: int) -> Layout:
    """The largest power of two of clusters that `count` vectors can train, at most the paper's 4,096."""
    m = next((m for m in (64, 48, 32, 16, 8) if dimension % m == 0), 0)
    if count < PQ_TRAINING or not m:
        return Layout()
    return Layout(min(MAX_NLIST, 1 << ((count // PER_CLUSTER).bit_length() - 1)), m, dimension > ROTATED_FROM * m)


@dataclass(frozen=True, slots=True)
class TrainedIndex:
    """An index as FAISS writes it, its nprobe in it, or nothing where the layout is flat; `rescored` times the wanted
    neighbours are to be taken from it and scored again."""

    layout: Layout = field(default_factory=Layout)
    index: bytes = b""
    rescored: int = RESCORED[0]


FLAT = TrainedIndex()


def quantised(read: Callable[[Any], Vectors], count: int, dimension: int, seed: int = 0) -> TrainedIndex:
    """A trained and filled index of `count` unit vectors, unless they are too few.

    `read` gives the vectors (R, D) of any rows: they are never all in memory.
    """
    layout = choose_layout(count, dimension)
    if not layout.nlist:
        return FLAT
    order = np.random.default_rng(seed).permutation(count)
    index = _trained(layout, read(order[: max(PQ_TRAINING, PER_CLUSTER_USED * layout.nlist)]))
    trial = _Trial(read(order[-TRIED:]))
    for begin in range(0, count, ADDED_AT_ONCE):
        vectors = read(slice(begin, min(count, begin + ADDED_AT_ONCE)))
        index.add(vectors)
        trial.add(begin, vectors)
    _, clusters = rotation_and_clusters(index)
    clusters.nprobe, rescored = trial.enough(index)
    return TrainedIndex(layout, faiss.serialize_index(index).tobytes(), rescored)


def _trained(layout: Layout, sample: Vectors) -> Any:
    """An empty index, trained on the sample (S, D), which is dropped on the way: it is large."""
    dimension = sample.shape[1]
    rotation: Any = None
    if layout.rotated:
        rotation = faiss.OPQMatrix(dimension, layout.m)
        rotation.niter = ROTATION_ROUNDS
        rotation.train(sample)
        sample = rotation.apply(sample)
    quantizer = faiss.IndexFlatIP(dimension)
    index: Any = faiss.IndexIVFPQ(quantizer, dimension, layout.nlist, layout.m, 8, faiss.METRIC_INNER_PRODUCT)
    index.train(sample)
    return _FAISS.IndexPreTransform(rotation, index) if layout.rotated else index


def rotation_and_clusters(index: Any) -> tuple[Any, Any]:
    """An index's rotation, or None, and its clusters, which search what was rotated."""
    if isinstance(index, faiss.IndexPreTransform):
        opened: Any = index
        return faiss.downcast_VectorTransform(opened.chain.at(0)), faiss.downcast_index(opened.index)
    return None, index


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

    def enough(self, index: Any) -> tuple[int, int]:
        """The fewest probes, by doubling, and the least of RESCORED that find RECALL of the neighbours.

        Where none do: the most of both, as far as MOST_SCANNED lets it.
        """
        rotation, clusters = rotation_and_clusters(index)
        asked, nprobe = rotation.apply(self._asked) if rotation else self._asked, NPROBE
        while True:
            chosen = _FAISS.SearchParametersIVF(nprobe=nprobe)
            _, found = clusters.search(asked, TRIED_TOP_K * RESCORED[-1], params=chosen)
            for rescored in RESCORED:
                pairs = zip(self._rows, found[:, : TRIED_TOP_K * rescored], strict=True)
                if np.mean([np.isin(rows, near).mean() for rows, near in pairs]) >= RECALL:
                    return nprobe, rescored
            if 2 * nprobe > clusters.nlist or 2 * nprobe * index.ntotal > MOST_SCANNED * clusters.nlist:
                return nprobe, RESCORED[-1]
            nprobe *= 2
