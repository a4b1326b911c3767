"""Keys and values of all layers of one sequence, in one tensor, compacted in place to an accepted path.

What is in use are the first `length` columns; a forward pass writes behind them, and what it wrote counts only once it
is kept. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from decoding.cache_memory import CacheMemory, of_arrays
from decoding.lean.shape import LeanShape

GROWTH = 512  # columns: copying all of them so rarely costs little beside what attention reads of them in between


class KeyValueCache:
    """`store` (layers, 2, KV heads, capacity, D): keys, then values. It grows by `growth` columns at a time: less than
    that is unused, however long the text. A larger `growth` is for who has to pay more than a copy for another store.

    Nothing here waits for the device: lengths are known to the host, and the columns of a path travel from pinned
    memory on the stream of the forward passes.
    """

    def __init__(self, shape: LeanShape, dtype: torch.dtype, device: torch.device, growth: int = GROWTH) -> None:
        size = (shape.layers, 2, shape.kv_heads, 0, shape.head_dim)
        self.store = torch.zeros(size, dtype=dtype, device=device)
        self.length = 0
        self._growth = growth

    @property
    def memory(self) -> CacheMemory:
        """Bytes in use and allocated."""
        return of_arrays(self.store.nbytes, self.capacity, self.length)

    @property
    def capacity(self) -> int:
        """Columns that are allocated."""
        return self.store.shape[3]

    def reserve(self, columns: int) -> None:
        """Make room for so many columns. What is in use stays; the store may be another tensor afterwards."""
        if columns <= self.capacity:
            return
        capacity = -(-columns // self._growth) * self._growth
        # Zeros, for whatever lies behind the last column is multiplied by zero at most, and zero times NaN is NaN.
        grown = self.store.new_zeros((*self.store.shape[:3], capacity, self.store.shape[4]))
        grown[:, :, :, : self.length] = self.store[:, :, :, : self.length]
        self.store = grown

    def write(self, layer: int, start: int, keys: Tensor, values: Tensor) -> None:
        """Put keys and values (Q, KV, D) of new tokens at the columns from `start` on."""
        end = start + len(keys)
        self.store[layer, 0, :, start:end] = keys.transpose(0, 1)
        self.store[layer, 1, :, start:end] = values.transpose(0, 1)

    def keep(self, offsets: Sequence[int]) -> None:
        """Of the columns behind `length` keep those at `offsets` (ascending), and drop all others.

        A path that lies in order at the beginning stays where it is.
        """
        start, end = self.length, self.length + len(offsets)
        if list(offsets) != list(range(len(offsets))):
            columns = torch.tensor([start + offset for offset in offsets])
            if self.store.is_cuda:
                columns = columns.pin_memory().to(self.store.device, non_blocking=True)
            self.store[:, :, :, start:end] = self.store.index_select(3, columns)
        self.length = end

    def truncate(self, length: int) -> None:
        """Keep the first `length` columns at most."""
        self.length = min(self.length, length)
