"""Drafters between answers: one per person and index, so that what it learns of somebody's answers stays theirs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from app.answering.prompt import fold
from decoding.drafter import Drafter
from decoding.drafters import LEARNING
from indexes.ngram_counts import NgramCounts, count_ngrams
from indexes.passage_store import PassageStore
from indexes.store import PassageIndex

MOST_KEPT = 64
MOST_COUNTS = 4  # indexes whose n-grams are in memory
MOST_COUNTED = 2000  # passages; about a second's work, and 50 MB

Key = tuple[str, Path | None, str]


class KeptDrafters:
    """`make` gives a new drafter of some name for the index in a folder, or for no index of ours.

    A drafter is out of here while an answer is written with it; if its person is forgotten meanwhile, it is not taken
    back. When this is full, what was used least recently goes.
    """

    def __init__(self, make: Callable[[str, Path | None], Drafter], most: int = MOST_KEPT) -> None:
        self._make = make
        self._most = most
        self._kept: OrderedDict[Key, Drafter] = OrderedDict()
        self._lent: set[Key] = set()
        self._lock = threading.Lock()  # a person may leave while their last answer is being written

    def take(self, person: str | None, folder: Path | None, name: str) -> Drafter:
        """The drafter that this person's last answer from this index was written with, or a new one."""
        key = person or "", folder, name
        with self._lock:
            drafter = self._kept.pop(key, None)
            if person and name in LEARNING:
                self._lent.add(key)
        return drafter or self._make(name, folder)

    def put_back(self, person: str | None, folder: Path | None, name: str, drafter: Drafter) -> None:
        """Keep a drafter that learns for the person's next answer; nobody's is not kept."""
        key = person or "", folder, name
        with self._lock:
            if key in self._lent:
                self._lent.remove(key)
                self._kept[key] = drafter
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)

    def forget(self, person: str) -> None:
        """Drop what was learned of a person's answers."""
        with self._lock:
            self._lent -= {key for key in self._lent if key[0] == person}
            for key in [key for key in self._kept if key[0] == person]:
                del self._kept[key]


class KeptCounts:
    """Which tokens follow which in the passages of the indexes asked last; `encode` makes tokens of a text."""

    def __init__(self, encode: Callable[[str], Sequence[int]], most: int = MOST_COUNTS) -> None:
        self._encode = encode
        self._most = most
        self._kept: dict[str, NgramCounts] = {}

    def of(self, index: PassageIndex, vocabulary: int) -> NgramCounts:
        """The counts of one generation of an index."""
        if index.digest not in self._kept:
            self._kept[index.digest] = count_passages(index.passages, self._encode, vocabulary)
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return self._kept[index.digest]


def count_passages(passages: PassageStore, encode: Callable[[str], Sequence[int]], vocabulary: int) -> NgramCounts:
    """Which tokens follow which in an index's passages; of a large index in every so-manieth one."""
    rows = passages.rows()[:: max(1, -(-len(passages) // MOST_COUNTED))].tolist()
    return count_ngrams((encode(fold(passage.text)) for passage in passages.get(rows)), vocabulary)
