"""Documents, their passages, and the passages of a whole index, wherever its segments keep them.

A passage stands in its document's text, which is stored once. Rows count on over all segments; a deleted document's
rows stay unused until its segment is merged.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from indexes.live import Live
    from indexes.passage_files import PassageFiles


def page_of(page_starts: Sequence[int], start: int) -> int | None:
    """The page, counted from 1, that holds character `start`; None for a text without pages."""
    return bisect.bisect_right(page_starts, start) if page_starts else None


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document, whose text has `title` at character `start`; lower levels are further out."""

    level: int
    title: str
    start: int


def headings_at(headings: Iterable[Heading], position: int) -> tuple[Heading, ...]:
    """The headings, outermost first, under which character `position` stands; `headings` are in order."""
    above: list[Heading] = []
    for heading in headings:
        if heading.start > position:
            break
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
    return tuple(above)


@dataclass(frozen=True, slots=True)
class Document:
    """A text that was read: where from, what it is called, and what the file's bytes hash to.

    page_starts holds the character at which each page begins; it is empty for texts without pages. headings are
    in order of their start.
    """

    source: str
    title: str
    text: str
    sha256: str
    page_starts: tuple[int, ...] = ()
    headings: tuple[Heading, ...] = ()

    def page(self, start: int) -> int | None:
        """The page, counted from 1, that holds character `start`; None for a text without pages."""
        return page_of(self.page_starts, start)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document: `text` stands in it from character `start` on.

    row is its place in the index's arrays; id is stable as long as its document does not change.
    """

    row: int
    id: str
    source: str
    title: str
    start: int
    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage that is not in an index yet: its text and where it starts in its document."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What a list of documents shows: sizes in characters, pages (None: it has none) and passages.

    indexed_at is when its text came into the index, in seconds since 1970; None if that was not noted.
    """

    source: str
    title: str
    chars: int
    pages: int | None
    passages: int
    indexed_at: float | None


class PassageStore:
    """The live documents and passages of an index; usable from any thread."""

    def __init__(self, parts: Sequence[tuple[PassageFiles, Live]]) -> None:
        self._parts = parts
        self._offsets = [live.offset for _, live in parts]

    def __len__(self) -> int:
        return sum(live.passages for _, live in self._parts)

    def rows(self) -> npt.NDArray[np.int64]:
        """The row of every passage, in order."""
        found = [live.offset + np.flatnonzero(live.rows) for _, live in self._parts]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def get(self, rows: Iterable[int]) -> list[Passage]:
        """The passages in these rows, in the order asked for. Raises KeyError for a row that is not there."""
        found: list[Passage] = []
        for row in rows:
            part = bisect.bisect_right(self._offsets, row) - 1
            files, live = self._parts[part] if part >= 0 else (None, None)
            if files is None or live is None or row - live.offset >= len(live.rows) or not live.rows[row - live.offset]:
                raise KeyError(row)
            found.append(files.passage(row - live.offset, row))
        return found

    def texts(self) -> list[str]:
        """The text of every passage, by row."""
        return [files.text(row) for files, live in self._parts for row in np.flatnonzero(live.rows).tolist()]

    def documents(self) -> Iterator[tuple[Document, list[tuple[int, Chunk]]]]:
        """Every document with the rows and chunks of its passages."""
        for files, live in self._parts:
            for number in live.numbers():
                chunks = files.chunks(number)
                yield files.document(number), [(live.offset + row, chunk) for row, chunk in chunks]

    def document(self, source: str) -> Document | None:
        """The document with this source, or None."""
        found = self.where(source)
        return None if found is None else self._parts[found[0]][0].document(found[1])

    def sources(self) -> list[str]:
        """The source of every document."""
        return [record["source"] for record in self._records()]

    def _records(self) -> Iterator[dict[str, Any]]:
        for files, live in self._parts:
            yield from map(files.record, live.numbers())

    def record(self, source: str) -> dict[str, Any] | None:
        """What is stored of a document beside its text, or None."""
        found = self.where(source)
        return None if found is None else self._parts[found[0]][0].record(found[1])

    def where(self, source: str) -> tuple[int, int] | None:
        """The segment, and in it the document, with this source; None if there is none."""
        for part, (files, live) in enumerate(self._parts):
            for number in files.numbers(source):
                if live.documents[number]:
                    return part, number
        return None

    def headings(self, source: str) -> tuple[Heading, ...]:
        """The headings of the document with this source, in order; none if there is no such document."""
        found = self.where(source)
        return () if found is None else self._parts[found[0]][0].headings(found[1])

    def facts(self) -> list[DocumentFacts]:
        """What a list of the documents shows, by source."""
        found = (files.facts(number) for files, live in self._parts for number in live.numbers())
        return sorted(found, key=lambda facts: facts.source)

    def close(self) -> None:
        """Close the files."""
        for files, _ in self._parts:
            files.close()
