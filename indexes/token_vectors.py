"""Per-token vectors of every passage as 8-bit integers: what late interaction reads, in checked pieces."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.checked import CheckedFile

SCALE = 127.0

Quantised = npt.NDArray[np.int8]


def quantise(vectors: npt.NDArray[np.float32]) -> Quantised:
    """Unit vectors (T, D) as 8-bit integers: cosines stay within about 0.01."""
    return np.asarray(np.rint(vectors * SCALE), np.int8)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A segment's vectors, one after the other; offsets (N + 1,) count vectors."""

    file: CheckedFile
    offsets: npt.NDArray[np.int64]
    dimension: int

    def of(self, row: int) -> Quantised:
        """The vectors (T, D) of the segment's passage in `row`."""
        begin, end = (self.offsets[row : row + 2] * self.dimension).tolist()
        return np.frombuffer(self.file.read(begin, end), np.int8).reshape(-1, self.dimension)


class TokenVectors:
    """Those of an index: its segments' files, and the rows at which these begin."""

    def __init__(self, parts: Sequence[tuple[TokenFile, int]]) -> None:
        self._parts = parts
        self._offsets = [offset for _, offset in parts]

    def of(self, row: int) -> Quantised:
        """The vectors (T, D) of the passage in `row`."""
        file, offset = self._parts[bisect.bisect_right(self._offsets, row) - 1]
        return file.of(row - offset)
