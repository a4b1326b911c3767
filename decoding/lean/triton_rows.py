"""`Operations` on Triton kernels: what a verify step computes between its matrix products.

A layer is ten kernels: four products, two norms, rotation, attention in two, and the gate. Knows how a tree is packed
(`decoding.lean.packed`), and no graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from decoding.lean.cache import KeyValueCache
from decoding.lean.packed import HEADER, Layout
from decoding.lean.torch_model import LeanModel
from decoding.lean.triton_attention import path_attention, tree_attention, tree_splits
from decoding.lean.triton_pointwise import add_norm, gate, rotate


class TritonRows:
    """One pass over the rows of `packed`, which lies on the device; the cache must have room for them.

    exact  attention that gives a row the same bits whatever else is in the pass; `packed` then holds paths, else bits
    """

    def __init__(self, model: LeanModel, cache: KeyValueCache, layout: Layout, packed: Tensor, exact: bool) -> None:
        self._model = model
        self._store = cache.store
        self._header = packed[:HEADER]
        self._depths = layout.depths(packed)
        self._seen = layout.seen(packed)
        self._exact = exact
        shape = model.shape
        processors = multiprocessors(model.device)
        self._splits = tree_splits(layout.rows, shape.heads, shape.kv_heads, model.dtype, processors)

    def add_norm(self, stream: Tensor, update: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """As `Operations` says."""
        return add_norm(stream, update, weight, self._model.shape.norm_eps)

    def gate(self, gate_up: Tensor) -> Tensor:
        """As `Operations` says."""
        return gate(gate_up)

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """As `Operations` says."""
        shape, weights = self._model.shape, self._model.weights
        keys, values = self._store[layer].unbind()
        norms = weights.layers[layer].q_norm, weights.layers[layer].k_norm
        tables = weights.cos, weights.sin
        query = rotate(qkv, self._header, self._depths, tables, norms, (keys, values), shape.heads, shape.norm_eps)
        if self._exact:
            return path_attention(query, keys, values, self._header, self._depths, self._seen)
        return tree_attention(query, keys, values, self._header, self._seen, self._splits)


def multiprocessors(device: torch.device) -> int:
    """How many blocks of threads run side by side; on the CPU, where kernels are interpreted, few."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
