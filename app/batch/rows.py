"""The rows of a run on disk: one JSON line per question, appended as it is answered.

A kill can tear the line that is being written, and a power failure what the disk had not taken yet. Opening drops every
line that is torn or stands there twice and keeps all others, so their questions are answered again and no others.
Knows nothing of what a row says beyond its number.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from indexes.files import write_whole

SYNC_ROWS, SYNC_S = 16, 5.0  # the most that a power failure can cost; a kill costs nothing that is written

Row = dict[str, Any]


def read_rows(path: Path) -> Iterator[Row]:
    """The whole rows of a file, each number once, in the file's order; nothing if there is no such file."""
    seen: set[int] = set()
    for line in _lines(path):
        row = _row(line)
        if row is not None and row["row"] not in seen:
            seen.add(row["row"])
            yield row


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from file


def _row(line: bytes) -> Row | None:
    """The row in a line; None for one that is not a whole row."""
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("row"), int) else None


def repair(path: Path, drop_failed: bool = False) -> int:
    """Drop what is torn or doubled, and with `drop_failed` the rows that hold an error: how many lines that were."""
    kept = sum(1 for _ in _kept(path, drop_failed))
    dropped = sum(1 for _ in _lines(path)) - kept
    if dropped:
        write_whole(path, b"".join(map(_line, _kept(path, drop_failed))))
    return dropped


def _kept(path: Path, drop_failed: bool) -> Iterator[Row]:
    return (row for row in read_rows(path) if not (drop_failed and row.get("error")))


def _line(row: Row) -> bytes:
    return json.dumps(row).encode("ascii") + b"\n"  # ASCII: no line separator of Unicode's, no half of a surrogate pair


class RowWriter:
    """Appends rows to a file that `repair` has seen, and syncs it every few rows or seconds. One writer at a time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._unsynced, self._synced_at = 0, time.monotonic()

    def append(self, row: Row) -> None:
        """Write a row: a kill from now on does not lose it."""
        line = memoryview(_line(row))
        while line:  # an unbuffered write may take only a part
            line = line[self._file.write(line) :]
        self._unsynced += 1
        if self._unsynced >= SYNC_ROWS or time.monotonic() - self._synced_at >= SYNC_S:
            self._sync()

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._unsynced, self._synced_at = 0, time.monotonic()

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sync()
        self._file.close()
