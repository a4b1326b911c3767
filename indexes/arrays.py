"""Several arrays of one dimension in one run of bytes: a line of JSON that describes them, then their items.

Reading copies nothing. The bytes are trusted: whoever reads them has compared them with their checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]
ALIGNED = 8  # bytes


def pack(arrays: Arrays) -> bytes:
    """The arrays as bytes."""
    described = [[name, _described(array.dtype), len(array)] for name, array in arrays.items()]
    pieces = [json.dumps(described).encode("ascii") + b"\n", *(array.tobytes() for array in arrays.values())]
    return b"".join(piece + bytes(-len(piece) % ALIGNED) for piece in pieces)


def unpack(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays that were packed, read-only."""
    at = data.index(b"\n") + 1
    found: dict[str, npt.NDArray[Any]] = {}
    for name, described, count in json.loads(data[:at]):
        at += -at % ALIGNED
        dtype = np.dtype([tuple(part) for part in described] if isinstance(described, list) else described)
        found[name] = np.frombuffer(data, dtype, count, at)
        at += found[name].nbytes
    return found


def _described(dtype: np.dtype[Any]) -> Any:
    return dtype.descr if dtype.names else dtype.str
