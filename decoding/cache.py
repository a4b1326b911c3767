"""A KV cache for one sequence that can be compacted to an accepted path, as a transformers cache.

Keys and values are preallocated and grow by `GROWTH` columns; nothing is concatenated in a step. Sliding-window
layers keep every token too: the window is a matter of the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from decoding.cache_memory import CacheMemory, of_arrays

GROWTH = 512  # columns: copying all of them so rarely costs little beside what attention reads of them in between


class TreeCacheLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, (1, KV, capacity, D), of which the first `length` columns are in use."""

    is_compileable = False
    is_sliding = False

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate for the shapes seen first."""
        self.keys = key_states.new_empty((*key_states.shape[:2], 0, key_states.shape[3]))
        self.values = value_states.new_empty((*value_states.shape[:2], 0, value_states.shape[3]))
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append the keys and values (1, KV, Q, D) of new tokens; returns views of all tokens in use."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        if end > self.keys.shape[2]:
            self.keys = self._grown(self.keys, end)
            self.values = self._grown(self.values, end)
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def _grown(self, old: torch.Tensor, end: int) -> torch.Tensor:
        capacity = -(-end // GROWTH) * GROWTH
        new = old.new_empty((*old.shape[:2], capacity, old.shape[3]))
        new[:, :, : self.length] = old[:, :, : self.length]
        return new

    def move(self, columns: torch.Tensor, start: int) -> None:
        """Copy the entries at `columns` to `start` and the columns after it."""
        for store in (self.keys, self.values) if self.is_initialized else ():
            store[:, :, start : start + len(columns)] = store[:, :, columns]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length of the keys after `query_length` more tokens, and their offset."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Number of columns in use."""
        return self.length

    def get_max_length(self) -> int:
        """-1: the cache grows."""
        return -1


class TreeCache(Cache):  # type: ignore[misc]
    """All layers. Between forward passes every layer has the same `length`."""

    def __init__(self, layers: int) -> None:
        self.tree_layers = [TreeCacheLayer() for _ in range(layers)]
        super().__init__(layers=list(self.tree_layers))

    @property
    def length(self) -> int:
        """Number of tokens in the cache."""
        return self.tree_layers[0].length

    def memory(self, length: int) -> CacheMemory:
        """Bytes allocated, and in use by the first `length` tokens."""
        filled = [layer for layer in self.tree_layers if layer.is_initialized]
        if not filled:
            return CacheMemory(0, 0)
        nbytes = sum(layer.keys.nbytes + layer.values.nbytes for layer in filled)
        return of_arrays(nbytes, filled[0].keys.shape[2], length)

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens."""
        for layer in self.tree_layers:
            layer.length = min(layer.length, length)

    def keep(self, start: int, path: Sequence[int]) -> None:
        """Of the columns from `start` on keep those of `path` (offsets, ascending); drop all others."""
        if list(path) != list(range(len(path))):
            columns = torch.tensor([start + offset for offset in path], device=self.tree_layers[0].keys.device)
            for layer in self.tree_layers:
                layer.move(columns, start)
        self.truncate(start + len(path))

    def copied(self) -> tuple[torch.Tensor, ...]:
        """Copies of what is in use: keys and values of each layer in turn."""
        stores = [store for layer in self.tree_layers if layer.length for store in (layer.keys, layer.values)]
        return tuple(store[:, :, : self.length].clone() for store in stores)

    def restore(self, parts: Sequence[torch.Tensor]) -> None:
        """Take over what `copied` gave."""
        self.truncate(0)
        for layer, keys, values in zip(self.tree_layers, parts[::2], parts[1::2], strict=False):
            layer.update(keys, values)
