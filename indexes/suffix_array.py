"""REST's datastore (crest sec. 3.1): all texts as they are, and the order of their suffixes.

Searched by bisection in two memory-mapped files: `text` (indexes/corpus.py) and `order`, the suffix array as 32-bit
positions. The paper keeps one array per 512 MB of tokens; so does this, in segments of whole texts, because a suffix
array is built in memory. Sorting is libdivsufsort's (pydivsufsort). Knows no drafter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pydivsufsort import divsufsort

from indexes.corpus import (
    Corpus,
    Progress,
    Tokens,
    decode_ids,
    encode_ids,
    id_bytes,
    known_end,
    no_progress,
    write_corpus,
)
from indexes.datastore import Opened, open_store, writing_store
from indexes.prefix_tree import NO_TREE, TokenTree, frequent_prefixes

KIND = "rest"
TEXT, ORDER = "text", "order"
SEGMENT = 2**24  # tokens sorted at once: about half a gigabyte of memory
MAX_TOKENS = 2**32 - 1

_U32 = struct.Struct("<I")


def build_rest(
    folder: Path,
    texts: Iterable[Sequence[int]],
    tokenizer_hash: str,
    vocabulary: int,
    progress: Progress = no_progress,
    segment: int = SEGMENT,
) -> None:
    """Write a REST datastore of these texts into `folder`, in place of what it held.

    Raises SettingError for an id outside [0, vocabulary), NothingToIndexError for no text at all.
    """
    with writing_store(folder, KIND, tokenizer_hash, vocabulary) as (draft, values):
        length = write_corpus(draft / TEXT, texts, vocabulary)
        corpus = Corpus(draft / TEXT, vocabulary)
        bounds, sizes = [0], []
        with (draft / ORDER).open("wb") as order:
            while bounds[-1] < length:
                progress("Sorting suffixes", bounds[-1], length)
                tokens = _segment(corpus, bounds[-1], segment)
                suffixes = divsufsort(tokens.astype(np.uint16 if corpus.width == 2 else np.uint32))
                suffixes = suffixes[tokens[suffixes] != 0]
                order.write(suffixes.astype("<u4").tobytes())
                bounds.append(bounds[-1] + len(tokens))
                sizes.append(len(suffixes))
        progress("Sorting suffixes", length, length)
        values |= {"tokens": sum(sizes), "bounds": bounds, "sizes_of_segments": sizes}


def _segment(corpus: Corpus, start: int, most: int) -> Tokens:
    """Tokens from `start` on, up to the last end of a text within `most`; a longer text is cut."""
    tokens = corpus.slice(start, min(start + most, corpus.length))
    ends = np.flatnonzero(tokens == 0)
    return tokens[: int(ends[-1]) + 1] if len(ends) else tokens


class RestStore:
    """Opens a datastore written by `build_rest`; usable from any thread.

    Raises IndexStoreError, DamagedIndexError.
    """

    def __init__(self, folder: Path, tokenizer_hash: str) -> None:
        self._opened = opened = open_store(folder, KIND, tokenizer_hash)
        self.vocabulary = opened.number("vocabulary", 1, 2**24 - 1)
        self._width = id_bytes(self.vocabulary)
        self._text, self._order = opened.map(TEXT), opened.map(ORDER)
        self._segments = self._read_segments(opened)

    def _read_segments(self, opened: Opened) -> list[tuple[int, int, int, int]]:
        """(first byte of text, end of it, first entry of the order, end of it) of every segment."""
        bounds, sizes = opened.values.get("bounds"), opened.values.get("sizes_of_segments")
        if not isinstance(bounds, list) or not isinstance(sizes, list) or len(bounds) != len(sizes) + 1:
            raise opened.damaged("its segments are not listed")
        segments, first = [], 0
        for start, end, size in zip(bounds, bounds[1:], sizes, strict=False):
            if not all(isinstance(value, int) for value in (start, end, size)) or not 0 <= size <= end - start:
                raise opened.damaged(f"a segment has {size!r} entries for tokens {start!r} to {end!r}")
            segments.append((start * self._width, end * self._width, first, first + size))
            first += size
        if (
            not segments
            or bounds[0] != 0
            or segments[-1][1] != len(self._text)
            or first * _U32.size != len(self._order)
        ):
            raise opened.damaged("its segments are not those of its files")
        return segments

    def lookup(
        self, context: Sequence[int], longest: int = 16, shortest: int = 2, most: int = 5000, depth: int = 10,
        limit: int = 64,
    ) -> tuple[int, TokenTree]:  # fmt: skip
        """The longest match of the context's end, `longest` to `shortest` tokens, and its tree of `limit` nodes.

        The tree merges `most` continuations of `depth` tokens, evenly spread over all in sorted order. The length is
        0 and the tree empty where nothing matches. Raises DamagedIndexError for contents that cannot be.
        """
        end = known_end(context, longest, self.vocabulary)
        low, high = shortest - 1, len(end)  # the longest match is in [low, high], low standing for none
        while low < high:
            middle = (low + high + 1) // 2
            if self._occurs(encode_ids(end[len(end) - middle :], self._width)):
                low = middle
            else:
                high = middle - 1
        for length in range(low, shortest - 1, -1):  # a match at the very end of a text has no continuation
            if len(tree := self._tree(encode_ids(end[len(end) - length :], self._width), most, depth, limit)):
                return length, tree
        return 0, NO_TREE

    def _suffix(self, segment: tuple[int, int, int, int], entry: int) -> int:
        """The byte at which the suffix in an entry of the order begins."""
        at = segment[0] + int(_U32.unpack_from(self._order, entry * _U32.size)[0]) * self._width
        if at >= segment[1]:
            raise self._opened.damaged(f"entry {entry} of its order points behind its segment")
        return at

    def _bisect(self, segment: tuple[int, int, int, int], key: bytes, after: bool) -> int:
        """The first entry whose suffix begins with more than `key`, or (not `after`) with at least `key`."""
        low, high, length = segment[2], segment[3], len(key)
        while low < high:
            middle = (low + high) // 2
            at = self._suffix(segment, middle)
            found = self._text[at : min(at + length, segment[1])]
            if found < key or (after and found == key):
                low = middle + 1
            else:
                high = middle
        return low

    def _occurs(self, key: bytes) -> bool:
        for segment in self._segments:
            entry = self._bisect(segment, key, after=False)
            if entry < segment[3]:
                at = self._suffix(segment, entry)
                if self._text[at : min(at + len(key), segment[1])] == key:
                    return True
        return False

    def _tree(self, key: bytes, most: int, depth: int, limit: int) -> TokenTree:
        """The tree of what follows `key`."""
        ranges = [(s, self._bisect(s, key, after=False), self._bisect(s, key, after=True)) for s in self._segments]
        total = sum(high - low for _, low, high in ranges)
        rows = []
        for segment, low, high in ranges:
            share = -(-(high - low) * most // max(total, most))  # rounded up
            for entry in np.linspace(low, high - 1, num=share, dtype=np.int64).tolist():
                at = self._suffix(segment, entry) + len(key)
                rows.append(
                    self._text[at : min(at + depth * self._width, segment[1])].ljust(depth * self._width, b"\0")
                )
        found = decode_ids(b"".join(rows), self._width).reshape(len(rows), depth)
        found[np.logical_or.accumulate(found == 0, axis=1)] = 0
        if found.size and found.max() > self.vocabulary:
            raise self._opened.damaged(f"its text holds ids outside the vocabulary of {self.vocabulary}")
        found = found[found[:, 0] != 0]
        if len(self._segments) > 1:  # each is sorted, all together are not
            found = found[np.lexsort(found.T[::-1])]
        return frequent_prefixes(found, limit) if len(found) else NO_TREE

    def close(self) -> None:
        """Unmap the files."""
        self._text.close()
        self._order.close()
