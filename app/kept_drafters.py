"""Drafters between answers: one per person and index, so that what it learns of somebody's answers stays theirs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from app.prompt import fold
from decoding.drafter import Drafter
from decoding.drafters import LEARNING
from indexes.ngram_counts import NgramCounts, count_ngrams
from indexes.passages import PassageStore

MOST_KEPT = 64
MOST_COUNTED = 2000  # passages; about a second's work, and 50 MB

Key = tuple[str, Path, str]


class KeptDrafters:
    """`make` gives a new drafter of some name for the index in a folder.

    A drafter is out of here while an answer is written with it. When it is full, what was used least recently goes.
    """

    def __init__(self, make: Callable[[str, Path], Drafter], most: int = MOST_KEPT) -> None:
        self._make = make
        self._most = most
        self._kept: OrderedDict[Key, Drafter] = OrderedDict()

    def take(self, person: str | None, folder: Path, name: str) -> Drafter:
        """The drafter that this person's last answer from this index was written with, or a new one."""
        return self._kept.pop((person or "", folder, name), None) or self._make(name, folder)

    def put_back(self, person: str | None, folder: Path, name: str, drafter: Drafter) -> None:
        """Keep a drafter that learns for the person's next answer; nobody's is not kept."""
        if person and name in LEARNING:
            self._kept[person, folder, name] = drafter
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget(self, person: str) -> None:
        """Drop what was learned of a person's answers."""
        for key in [key for key in list(self._kept) if key[0] == person]:
            self._kept.pop(key, None)


def count_passages(passages: PassageStore, encode: Callable[[str], Sequence[int]], vocabulary: int) -> NgramCounts:
    """Which tokens follow which in an index's passages; of a large index in every so-manieth one."""
    rows = range(0, len(passages), max(1, -(-len(passages) // MOST_COUNTED)))
    return count_ngrams((encode(fold(passage.text)) for passage in passages.get(rows)), vocabulary)
