"""Files that are written once and checked whenever they are read.

A small file is read whole and compared with its SHA-256. A large one is read in pieces: each block is compared with a
digest of its own when it is first read, so that opening reads nothing of it and no changed byte is used. Reads are
positioned reads of a file that stays open: it may be removed meanwhile, and a torn file or a failing disk is an error
and not a signal. Knows nothing of what the files hold.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import fsync, pread
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import numpy.typing as npt

from indexes.errors import DamagedIndexError, IndexStoreError

T = TypeVar("T")
BLOCK = 1 << 16  # bytes
PAGE = 1 << 12  # bytes
COMPARED_AT_ONCE = 1 << 24  # bytes
DIGEST = 16  # bytes of a block's SHA-256 that are kept


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file must be: its size in bytes and its SHA-256."""

    bytes: int
    sha256: str


def block_of_rows(row_bytes: int) -> int:
    """Bytes of a block, of whole rows, for a file that is read row by row here and there."""
    return row_bytes * max(1, PAGE // row_bytes)


def digest_of(block: bytes | bytearray) -> bytes:
    """What is kept of a block."""
    return hashlib.sha256(block).digest()[:DIGEST]


@contextlib.contextmanager
def saying_that_it_cannot_be_written(path: Path) -> Iterator[None]:
    """A full disk, and whatever else the system says while `path` is written, is an IndexStoreError."""
    try:
        yield
    except OSError as error:
        raise IndexStoreError(
            f"{path} cannot be written ({error.strerror}); nothing was changed: make room, or mend what is wrong, "
            "and try again"
        ) from error


class CheckedWriter:
    """Writes a new file and reckons its checksums on the way; `close` flushes it to the disk.

    `block_digests` are those of all blocks, of `block_bytes` each and one after the other, once it is closed. Raises
    IndexStoreError when the system does not let it write.
    """

    def __init__(self, path: Path, block_bytes: int = BLOCK) -> None:
        self.path = path
        self.block_bytes = block_bytes
        self.bytes = 0
        self.block_digests = bytearray()
        self._sha256 = hashlib.sha256()
        self._block = bytearray()
        with saying_that_it_cannot_be_written(path):
            self._file: IO[bytes] = path.open("xb")

    def write(self, data: bytes | memoryview) -> None:
        """Append."""
        with saying_that_it_cannot_be_written(self.path):
            self._file.write(data)
        self.bytes += len(data)
        self._sha256.update(data)
        self._block += data
        whole = len(self._block) // self.block_bytes * self.block_bytes
        for begin in range(0, whole, self.block_bytes):
            self.block_digests += digest_of(self._block[begin : begin + self.block_bytes])
        del self._block[:whole]

    def flush(self) -> None:
        """Let readers of this machine see what was written."""
        with saying_that_it_cannot_be_written(self.path):
            self._file.flush()

    def close(self) -> FileFacts:
        """Finish; everything is on the disk afterwards."""
        if self._block:
            self.block_digests += digest_of(self._block)
        self.flush()
        with saying_that_it_cannot_be_written(self.path):
            fsync(self._file.fileno())
            self._file.close()
        return FileFacts(self.bytes, self._sha256.hexdigest())

    def abandon(self) -> None:
        """Close the file without caring for what is in it."""
        with contextlib.suppress(OSError):
            self._file.close()


def write_checked(path: Path, data: bytes) -> FileFacts:
    """Write a new file at once."""
    writer = CheckedWriter(path)
    try:
        writer.write(data)
        return writer.close()
    finally:
        writer.abandon()


class CheckedFile:
    """Reads a file that must be as `facts` say; it stays readable after it is removed. Usable from any thread.

    Raises DamagedIndexError, from `reading` too, naming the file and saying `remedy`.
    """

    def __init__(self, path: Path, facts: FileFacts, remedy: str = "") -> None:
        self.path = path
        self.bytes = facts.bytes
        self._facts = facts
        self._remedy = remedy
        self._digests = b""
        self._block_bytes = BLOCK
        self._checked = np.zeros(0, np.bool_)
        self._held: npt.NDArray[np.uint8] | None = None
        self._file = self._or_damaged(lambda: path.open("rb", buffering=0))
        size = self._or_damaged(lambda: self._file.seek(0, 2))
        if size != facts.bytes:
            raise self.damaged(f"it has {size} bytes, not the {facts.bytes} that were written")

    def damaged(self, what: str) -> DamagedIndexError:
        """An error to raise."""
        remedy = f"; {self._remedy}" if self._remedy else ""
        return DamagedIndexError(f"{self.path} is damaged: {what}{remedy}")

    def _or_damaged(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except OSError as error:
            raise self.damaged(f"it cannot be read ({error.strerror})") from error

    def with_blocks(self, digests: bytes, block_bytes: int = BLOCK, held: bool = False) -> CheckedFile:
        """Itself, to be read in pieces from now on; what `rows` reads is held in memory, or is not."""
        self._digests = digests
        self._block_bytes = block_bytes
        self._checked = np.zeros(-(-self.bytes // block_bytes), np.bool_)
        self._held = np.empty(self.bytes, np.uint8) if held else None  # takes memory as it is filled
        return self

    def whole(self) -> bytes:
        """All of it, after comparing it with its SHA-256."""
        data = self._read(0, self.bytes)
        if hashlib.sha256(data).hexdigest() != self._facts.sha256:
            raise self.damaged("it is not what was written")
        return data

    def compare(self) -> None:
        """Compare all of it with its SHA-256, without holding it in memory."""
        found = hashlib.sha256()
        for begin in range(0, self.bytes, COMPARED_AT_ONCE):
            found.update(self._read(begin, min(begin + COMPARED_AT_ONCE, self.bytes)))
        if found.hexdigest() != self._facts.sha256:
            raise self.damaged("it is not what was written")

    def read(self, begin: int, end: int) -> bytes:
        """The bytes [begin, end), after comparing the blocks that they stand in, each once."""
        for block in range(begin // self._block_bytes, -(-end // self._block_bytes)):
            if not self._checked[block]:
                self._check(block)
        return self._read(begin, end)

    def rows(self, rows: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.uint8]:
        """The bytes (R, size) of these rows, of `size` bytes each, compared as by `read`."""
        assert size <= self._block_bytes  # so a row stands in two blocks at most
        begins = rows * size
        blocks = np.concatenate([begins, begins + (size - 1)]) // self._block_bytes
        for block in np.unique(blocks[~self._checked[blocks]]).tolist():
            self._check(block)
        if self._held is not None:
            found: npt.NDArray[np.uint8] = self._held[: self.bytes // size * size].reshape(-1, size)[rows]
            return found
        file = self._file.fileno()
        data = self._or_damaged(lambda: b"".join([pread(file, size, begin) for begin in begins.tolist()]))
        if len(data) < len(rows) * size:
            raise self.damaged("it is shorter than what was written")
        return np.frombuffer(data, np.uint8).reshape(-1, size)

    def _check(self, block: int) -> None:
        begin = block * self._block_bytes
        data = self._read(begin, min(begin + self._block_bytes, self.bytes))
        if digest_of(data) != self._digests[block * DIGEST : (block + 1) * DIGEST]:
            raise self.damaged("it is not what was written")
        if self._held is not None:
            self._held[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        self._checked[block] = True

    def _read(self, begin: int, end: int) -> bytes:
        pieces, at = [], begin
        while at < end:  # one call reads 2 GB at most
            pieces.append(self._or_damaged(lambda: pread(self._file.fileno(), end - at, at)))  # noqa: B023
            if not pieces[-1]:
                raise self.damaged("it is shorter than what was written")
            at += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
