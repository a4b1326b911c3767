"""All places of a corpus in passes that fit in memory, sorted so that equal n-grams lie together.

A pass holds the places of some first tokens, about PASS of them; a token with more places than that has several
passes, by the token after it: so n-grams of two tokens and more lie in one pass, whatever their frequency.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.corpus import Corpus, Rows, Tokens

PASS = 2**20


@dataclass(slots=True)
class Pass:
    """Places whose token (plus one) is in [low, high), and whose next one is `part` modulo `parts`.

    total   how many places all parts have together
    places  how many this one has; known once they were found
    """

    low: int
    high: int
    total: int
    part: int = 0
    parts: int = 1
    places: int = 0

    @property
    def is_last(self) -> bool:
        """Whether no other part of the same token follows."""
        return self.part == self.parts - 1


def plan_passes(corpus: Corpus) -> Iterator[Pass]:
    """Passes that hold every place once."""
    counts = np.zeros(1, np.int64)
    for _, tokens in _pieces(corpus):
        found = np.bincount(tokens, minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    low, total = 1, 0
    for token, count in enumerate(counts.tolist()[1:], 1):
        if total and total + count > PASS:
            yield Pass(low, token, total)
            low, total = token, 0
        total += count
        if total > PASS:
            parts = -(-total // PASS)
            yield from (Pass(token, token + 1, total, part, parts) for part in range(parts))
            low, total = token + 1, 0
    if total:
        yield Pass(low, len(counts), total)


def _pieces(corpus: Corpus) -> Iterator[tuple[int, Tokens]]:
    for start in range(0, corpus.length, PASS):
        yield start, corpus.slice(start, min(start + PASS, corpus.length))


def find_places(corpus: Corpus, chosen: Pass) -> Tokens:
    """The places of a pass, in the order of the texts."""
    found = [np.zeros(0, np.int64)]
    for start, tokens in _pieces(corpus):
        at = np.flatnonzero((tokens >= chosen.low) & (tokens < chosen.high))
        if chosen.parts > 1:
            end = start + len(tokens)
            at = at[np.append(tokens, corpus.slice(end, end + 1))[at + 1] % chosen.parts == chosen.part]
        found.append(at + start)
    chosen.places = sum(map(len, found))
    return np.concatenate(found)


def sorted_rows(corpus: Corpus, places: Tokens, length: int) -> tuple[Tokens, Rows]:
    """The places (P,) and the `length` tokens plus one from each on (P, length), sorted by these."""
    rows = corpus.windows(places, length)
    together = 63 // (8 * corpus.width)  # columns that are sorted as one number
    keys = []
    for column in range(0, length, together):
        key = np.zeros(len(rows), np.int64)
        for tokens in rows[:, column : column + together].T:
            key = (key << 8 * corpus.width) | tokens
        keys.append(key)
    order = np.lexsort(keys[::-1])
    return places[order], rows[order]


def runs(rows: npt.NDArray[np.integer], n: int) -> tuple[Tokens, Tokens]:
    """Where the rows of each n-gram begin, and how many they are; without those that nothing ever follows."""
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    changed = (rows[1:, :n] != rows[:-1, :n]).any(axis=1)
    starts = np.concatenate(([0], np.flatnonzero(changed) + 1))
    lengths = np.diff(starts, append=len(rows))
    followed = (
        rows[starts + lengths - 1, n] != 0
    )  # sorted: the last row goes on if any does, and only from a whole n-gram
    return starts[followed], lengths[followed]
