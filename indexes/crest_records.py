"""Collects CREST's records in the order in which they are made, and writes them in the order of their hashes.

Records wait in PARTS files by the upper bits of their hash, so that one part at a time is in memory; 24 bytes per
record stay there. A record is left out if the same tree is kept for the end of its n-gram (crest_build.py says why).
"""

from __future__ import annotations

import contextlib
from array import array
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt

from indexes.corpus import Progress
from indexes.crest import PER_BUCKET, key_hash
from indexes.errors import NothingToIndexError, SettingError

PARTS = 64
MAX_BYTES = 2**32 - 1

Hashes = npt.NDArray[np.uint64]


class RecordWriter:
    """Owns the waiting files, which lie in `folder` and are gone when the block is left."""

    def __init__(self, folder: Path, width: int) -> None:
        self._width = width
        self._paths = [folder / f"part-{part:02}" for part in range(PARTS)]
        self._files: list[BinaryIO] = []
        self._keys, self._ends, self._trees = array("Q"), array("Q"), array("Q")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._files = [stack.enter_context(path.open("w+b")) for path in self._paths]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for path in self._paths:
            path.unlink()

    def add(self, key: bytes, record: bytes) -> None:
        """Take the record of an n-gram, given as bytes; each n-gram comes once."""
        hashed = key_hash(key)
        self._files[hashed * PARTS >> 64].write(record)
        self._keys.append(hashed)
        self._ends.append(key_hash(key[self._width :]) if len(key) > self._width else 0)
        self._trees.append(key_hash(record[2 + len(key) :]))

    def write(self, buckets: Path, records: Path, progress: Progress) -> int:
        """Write both files of a datastore; returns how many records they hold.

        Raises NothingToIndexError if there is none, SettingError if there are too many for 32-bit bounds.
        """
        if not self._keys:
            raise NothingToIndexError("no text is longer than one token, so there is nothing to build a datastore from")
        redundant = self._redundant()
        count = len(self._keys) - len(redundant)
        bounds = np.zeros(max(1, count // PER_BUCKET) + 1, np.uint64)
        with records.open("wb") as out:
            for part in range(PARTS):
                progress("Writing trees", part, PARTS)
                kept = self._part(part, redundant)
                for hashed, record in kept:
                    bounds[(hashed * (len(bounds) - 1) >> 64) + 1] += np.uint64(len(record))
                    out.write(record)
        progress("Writing trees", PARTS, PARTS)
        np.add.accumulate(bounds, out=bounds)
        if bounds[-1] > MAX_BYTES:
            raise SettingError(f"the trees take {bounds[-1]} bytes, more than {MAX_BYTES}: choose a smaller size")
        buckets.write_bytes(bounds.astype("<u4").tobytes())
        return count

    def _redundant(self) -> Hashes:
        """The hashes, sorted, of the n-grams whose tree is that of their end."""
        keys, ends, trees = (np.frombuffer(column, np.uint64) for column in (self._keys, self._ends, self._trees))
        order = np.argsort(keys)
        at = order[np.minimum(np.searchsorted(keys, ends, sorter=order), len(keys) - 1)]
        return np.sort(keys[(ends != 0) & (keys[at] == ends) & (trees[at] == trees)])

    def _part(self, part: int, redundant: Hashes) -> list[tuple[int, bytes]]:
        """The records to keep of one part with their hashes, in the order of these."""
        file, width = self._files[part], self._width
        file.seek(0)
        data, at, found = file.read(), 0, []
        while at < len(data):
            key = at + 2
            tree = key + data[at + 1] * width
            after = tree + data[at] * (width + 1)
            hashed = key_hash(data[key:tree])
            place = int(np.searchsorted(redundant, np.uint64(hashed)))
            if place == len(redundant) or redundant[place] != hashed:
                found.append((hashed, data[at:after]))
            at = after
        return sorted(found)
