"""How much memory a target model and its cache take. Knows no model: a target that can tell is a `TellsMemory`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor


@dataclass(frozen=True, slots=True)
class CacheMemory:
    """Bytes of keys and values, and of what grows with them.

    used_bytes       of the tokens that are in the cache
    allocated_bytes  of the arrays that they lie in
    scratch_bytes    of arrays kept between passes that grow with the cache, such as attention's scores; what a library
                     allocates within a pass is not counted
    """

    used_bytes: int
    allocated_bytes: int
    scratch_bytes: int = 0


@runtime_checkable
class TellsMemory(Protocol):
    """A target model that can tell."""

    @property
    def cache_memory(self) -> CacheMemory:
        """What its cache takes now."""

    @property
    def weight_bytes(self) -> int:
        """What its weights take as they lie in memory, tables of rotations included."""


def of_arrays(nbytes: int, capacity: int, length: int, scratch_bytes: int = 0) -> CacheMemory:
    """What arrays of `nbytes` with room for `capacity` tokens take, `length` of them in use."""
    return CacheMemory(nbytes // capacity * length if capacity else 0, nbytes, scratch_bytes)


def of_tensors(tensors: Iterable[Tensor]) -> int:
    """Bytes of these tensors; one that stands for two, such as a tied head, counts once."""
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())
