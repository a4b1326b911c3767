"""Texts as tokens in one file, one after another with a zero between them: what datastores are built from.

A token is written as its id plus one, in as few bytes as the vocabulary needs, most significant byte first: so bytes
compare as tokens do, and the zero after a text comes before every token. Read by memory mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from indexes.errors import NothingToIndexError, SettingError

Progress = Callable[[str, int, int], None]
Tokens = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]  # there are many: half the memory

MAX_VOCABULARY = 2**24 - 1


def no_progress(what: str, done: int, total: int) -> None:
    """The default for `progress`."""


def id_bytes(vocabulary: int) -> int:
    """How many bytes hold an id plus one: 2 up to 65,535 ids, else 3. Raises SettingError for an impossible size."""
    if not 1 <= vocabulary <= MAX_VOCABULARY:
        raise SettingError(f"vocabulary is {vocabulary}; it must be 1 to {MAX_VOCABULARY}")
    return 2 if vocabulary < 2**16 else 3


def encode_ids(ids: Sequence[int] | npt.NDArray[np.integer], width: int) -> bytes:
    """Ids (not plus one) as the file holds them."""
    values = np.asarray(ids, dtype=">u4").reshape(-1) + np.uint32(1)
    return values.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 4 - width :].tobytes()


def decode_ids(data: bytes | memoryview | npt.NDArray[np.uint8], width: int) -> Tokens:
    """Ids plus one from bytes, zeros included; whole tokens only."""
    if width == 2:
        return np.frombuffer(data, ">u2").astype(np.int64)
    rows = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int64)
    return (rows[:, 0] << 16) | (rows[:, 1] << 8) | rows[:, 2]


def known_end(context: Sequence[int], longest: int, vocabulary: int) -> Sequence[int]:
    """The end of a context, up to `longest` tokens, from its last id outside the vocabulary on."""
    end = context[max(0, len(context) - longest) :]
    if end and not 0 <= min(end) <= max(end) < vocabulary:
        return end[1 + max(at for at, token in enumerate(end) if not 0 <= token < vocabulary) :]
    return end


def write_corpus(path: Path, texts: Iterable[Sequence[int]], vocabulary: int) -> int:
    """Write the texts that are not empty; returns the file's length in tokens, a zero per text included.

    Raises SettingError for an id outside the vocabulary, NothingToIndexError if there is no token at all.
    """
    width, written = id_bytes(vocabulary), 0
    with path.open("wb") as file:
        for text in texts:
            ids = np.asarray(text, np.int64)
            if not len(ids):
                continue
            if ids.min() < 0 or ids.max() >= vocabulary:
                worst = int(ids.max() if ids.max() >= vocabulary else ids.min())
                raise SettingError(f"a text holds the token id {worst}; the vocabulary has ids 0 to {vocabulary - 1}")
            file.write(encode_ids(ids, width) + bytes(width))
            written += len(ids) + 1
    if not written:
        raise NothingToIndexError("the texts hold no tokens, so there is nothing to build a datastore from")
    return written


class Corpus:
    """Reads such a file in pieces."""

    def __init__(self, path: Path, vocabulary: int) -> None:
        self.width = id_bytes(vocabulary)
        self._bytes = np.memmap(path, np.uint8, "r")
        self.length = len(self._bytes) // self.width

    def slice(self, start: int, end: int) -> Tokens:
        """The tokens plus one of [start, end), filled up with zeros beyond the end."""
        found = decode_ids(self._bytes[start * self.width : end * self.width], self.width)
        return np.concatenate((found, np.zeros(max(0, end - start - len(found)), np.int64)))

    def windows(self, positions: Tokens, length: int) -> Rows:
        """(P, length) the tokens plus one from each position on; zeros from the end of its text on."""
        rows = np.empty((len(positions), length), np.int32)
        for column in range(length):
            at = np.minimum(positions + column, self.length - 1)  # the last token is a zero
            rows[:, column] = self._gather(at)
        ended = np.logical_or.accumulate(rows == 0, axis=1)
        rows[ended] = 0
        return rows

    def _gather(self, at: Tokens) -> Tokens:
        found = np.zeros(len(at), np.int64)
        for byte in range(self.width):
            found = (found << 8) | self._bytes[at * self.width + byte]
        return found
