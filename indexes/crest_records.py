"""Collects CREST's records in the order in which they are made, and writes them in the order of their hashes.

Records wait in PARTS files by the upper bits of their hash, so that one part at a time is in memory; 40 bytes per
record stay there. A record is left out if the same tree is kept for the end of its n-gram (crest_build.py says why),
and, where bytes are limited, if others tell more per byte (crest_selection.py).
"""

from __future__ import annotations

import contextlib
import os
from array import array
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt

from indexes.corpus import Progress
from indexes.crest import MAX_NGRAM, MAX_NODES, PER_BUCKET, key_hash
from indexes.crest_selection import first_level, most_telling, told
from indexes.errors import NothingToIndexError, SettingError

PARTS = 64
MAX_BYTES = 2**32 - 1
MAX_RECORD = 2 + 3 * MAX_NGRAM + 4 * MAX_NODES
BUCKET_SHARE = 4 / PER_BUCKET  # bytes of `buckets` per record

Hashes = npt.NDArray[np.uint64]


class RecordWriter:
    """Owns the waiting files, which lie in `folder` and are gone when the block is left."""

    def __init__(self, folder: Path, width: int) -> None:
        self._width = width
        self._paths = [folder / f"part-{part:02}" for part in range(PARTS)]
        self._files: list[BinaryIO] = []
        self._keys, self._ends, self._trees = array("Q"), array("Q"), array("Q")
        self._places, self._seen = array("Q"), array("Q")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._files = [stack.enter_context(path.open("w+b")) for path in self._paths]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for path in self._paths:
            path.unlink()

    def add(self, key: bytes, record: bytes, seen: int = 1) -> None:
        """Take the record of an n-gram, given as bytes, which was seen so often; each n-gram comes once."""
        hashed = key_hash(key)
        file = self._files[hashed * PARTS >> 64]
        self._places.append(file.tell())
        self._seen.append(seen)
        file.write(record)
        self._keys.append(hashed)
        self._ends.append(key_hash(key[self._width :]) if len(key) > self._width else 0)
        self._trees.append(key_hash(record[2 + len(key) :]))

    def write(self, buckets: Path, records: Path, progress: Progress, limit_bytes: int | None = None) -> int:
        """Write both files of a datastore, in all at most `limit_bytes`; returns how many records they hold.

        Raises NothingToIndexError if there is none, SettingError if there are too many for 32-bit bounds.
        """
        if not self._keys:
            raise NothingToIndexError("no text is longer than one token, so there is nothing to build a datastore from")
        redundant = self._redundant()
        if limit_bytes is not None:
            redundant = self._limited(redundant, limit_bytes, progress)
            if len(redundant) == len(self._keys):
                raise SettingError(f"limit_bytes is {limit_bytes}, which is too little for any tree")
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

    def _limited(self, redundant: Hashes, limit_bytes: int, progress: Progress) -> Hashes:
        """The redundant hashes and those of what tells least per byte, so that the others keep within the limit."""
        for file in self._files:
            file.flush()
        keys = np.frombuffer(self._keys, np.uint64)
        worth, costs = np.zeros(len(keys)), np.zeros(len(keys))
        order = np.argsort(keys)
        left_out = np.isin(keys, redundant)
        for index in np.flatnonzero(~left_out).tolist():
            if index % 10_000 == 0:
                progress("Weighing trees", index, len(keys))
            worth[index], costs[index] = self._weigh(index, keys, order)
        progress("Weighing trees", len(keys), len(keys))
        left_out[~left_out] = ~most_telling(
            worth[~left_out], costs[~left_out], keys[~left_out], limit_bytes - 2 * PER_BUCKET
        )
        return np.sort(keys[left_out])

    def _weigh(self, index: int, keys: Hashes, order: npt.NDArray[np.int64]) -> tuple[float, float]:
        """What a record tells beyond that of the longest end of its n-gram, and its bytes."""
        width, record, end = self._width, self._read(index), b""
        first = 2 + record[1] * width
        for start in range(2 + width, first, width):
            hashed = np.uint64(key_hash(record[start:first]))
            place = int(np.searchsorted(keys, hashed, sorter=order))
            if place < len(keys) and keys[order[place]] == hashed:
                end = self._read(int(order[place]))
                break
        more = told(first_level(record, width), first_level(end, width) if end else {})
        return self._seen[index] * more, first + record[0] * (width + 1) + BUCKET_SHARE

    def _read(self, index: int) -> bytes:
        """The record added as the `index`-th, and what follows it."""
        file = self._files[self._keys[index] * PARTS >> 64]
        return os.pread(file.fileno(), MAX_RECORD, self._places[index])

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
