"""Nearest neighbours by inner product, in FAISS: exact while a corpus is small, IVF-PQ once it can be trained.

The paper's setting (ngram_trie sec. 4.1) is IVF4096,PQ64 with nprobe 16. FAISS wants 39 training vectors per
cluster and 9,984 for 8-bit product quantisation; below that the index is flat. Quantisation loses recall,
so candidates of a quantised index are scored again with the stored vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

PQ_TRAINING = 9984
PER_CLUSTER = 39
MAX_NLIST = 4096
MAX_M = 64
RESCORED = 4  # a quantised index returns this many times top_k candidates for rescoring


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


def build_vector_index(vectors: Vectors, path: Path, seed: int = 0) -> Layout:
    """Train and fill an index of unit vectors (N, D), write it to `path`, and say how it is laid out."""
    count, dimension = vectors.shape
    layout = choose_layout(count, dimension)
    if layout.nlist:
        quantizer = faiss.IndexFlatIP(dimension)
        index: Any = faiss.IndexIVFPQ(quantizer, dimension, layout.nlist, layout.m, 8, faiss.METRIC_INNER_PRODUCT)
        sample = np.random.default_rng(seed).permutation(count)[: max(PQ_TRAINING, 64 * layout.nlist)]
        index.train(np.ascontiguousarray(vectors[sample]))
    else:
        index = faiss.IndexFlatIP(dimension)
    index.add(np.ascontiguousarray(vectors))
    faiss.write_index(index, str(path))
    return layout


class VectorIndex:
    """Opens an index written by `build_vector_index`; `stored` (N, D) are the vectors that it was built from."""

    def __init__(self, path: Path, stored: npt.NDArray[Any], nprobe: int = 16) -> None:
        index: Any = faiss.read_index(str(path))
        self._index = index
        self._stored = stored
        self._quantised = hasattr(index, "nprobe")
        if self._quantised:
            index.nprobe = nprobe

    def search(self, query: Vectors, top_k: int) -> list[int]:
        """Rows of the `top_k` vectors with the greatest inner product with `query` (D,), best first."""
        wanted = min(top_k * RESCORED if self._quantised else top_k, self._index.ntotal)
        if wanted < 1:
            return []
        _, found = self._index.search(query[None].astype(np.float32), wanted)
        rows = found[0][found[0] >= 0]
        if self._quantised:
            rows = rows[np.argsort(-(self._stored[rows].astype(np.float32) @ query), kind="stable")]
        return [int(row) for row in rows[:top_k]]
