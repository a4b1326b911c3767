"""Documents and passages as values; a passage stands in its document's text. Knows no files."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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
