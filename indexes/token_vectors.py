"""Per-token vectors of every passage as 8-bit integers in one memory-mapped file: what late interaction reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

SCALE = 127.0

Quantised = npt.NDArray[np.int8]


def quantise(vectors: npt.NDArray[np.float32]) -> Quantised:
    """Unit vectors (T, D) as 8-bit integers: cosines stay within about 0.01."""
    return np.asarray(np.rint(vectors * SCALE), np.int8)


class TokenVectorsWriter:
    """Appends passages by row to `path`; `close` writes where each begins."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._file = path.open("wb")
        self._offsets_path = path.with_suffix(".offsets.npy")
        self._dimension = dimension
        self._offsets = [0]

    def append(self, vectors: Quantised) -> None:
        """Add the vectors (T, D) of the next passage."""
        self._file.write(np.ascontiguousarray(vectors).tobytes())
        self._offsets.append(self._offsets[-1] + len(vectors))

    def close(self) -> None:
        """Finish both files."""
        self._file.close()
        np.save(self._offsets_path, np.array(self._offsets, np.int64))


class TokenVectors:
    """Reads such files."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._offsets = np.load(path.with_suffix(".offsets.npy"))
        self._data = np.memmap(path, np.int8, "r", shape=(int(self._offsets[-1]), dimension))

    def of(self, row: int) -> Quantised:
        """The vectors (T, D) of the passage in `row`."""
        return self._data[self._offsets[row] : self._offsets[row + 1]]
