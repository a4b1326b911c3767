"""Where a run of characters stands in its document: page, headings, and the text around it.

Pure: knows texts and positions, not the screen that shows them. The text around is the page, for a document with
pages; else the section, for one with headings; else the document; and of a long one the paragraphs next to the run.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from indexes.errors import SettingError
from indexes.passage_store import PassageStore
from indexes.passages import Document, Heading, headings_at

MAX_CHARS = 4000
MAX_HEADING_CHARS = 80
SPACE = re.compile(r"\s+")
PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Place:
    """`marked` stands in the document at character `start`, between `before` and `after`.

    page is counted from 1, or None; headings are outermost first. cut_before and cut_after say whether the page or
    section has more than what is given.
    """

    source: str
    title: str
    start: int
    page: int | None
    headings: tuple[str, ...]
    before: str
    marked: str
    after: str
    cut_before: bool
    cut_after: bool

    @property
    def citation(self) -> str:
        """The document's title with the page or the headings, in one line."""
        return citation(self.title, self.page, self.headings)

    def to_json(self) -> dict[str, Any]:
        """The place as plain values."""
        return asdict(self) | {"citation": self.citation}


def citation(title: str, page: int | None, headings: tuple[str, ...]) -> str:
    """For people: "notes.html › Setup › Windows", "report.pdf, page 3"."""
    return " › ".join((title if page is None else f"{title}, page {page}", *headings))


def find_place(store: PassageStore, source: str, start: int, end: int, max_chars: int = MAX_CHARS) -> Place:
    """The place of characters [start, end) of a document; a span's are its passage's start plus its own.

    Raises SettingError for a document or characters that are not there.
    """
    document = store.document(source)
    if document is None:
        raise SettingError(f"there is no document {source!r} in this index")
    return place_in(document, start, end, max_chars)


def place_in(document: Document, start: int, end: int, max_chars: int = MAX_CHARS) -> Place:
    """The place of characters [start, end) with at most `max_chars` of text, or with what is marked if that is longer.

    Raises SettingError for characters that are not there.
    """
    text = document.text
    if not 0 <= start < end <= len(text):
        raise SettingError(f"characters {start} to {end} are not in {document.source!r}, which has {len(text)}")
    left, right = _around(document, start, end)
    first, last = _window(text, left, right, start, end, max_chars)
    return Place(
        document.source,
        document.title,
        start,
        document.page(start),
        _titles(headings_at(document.headings, start)),
        text[first:start],
        text[start:end],
        text[end:last],
        first > left,
        last < right,
    )


def _titles(headings: tuple[Heading, ...]) -> tuple[str, ...]:
    folded = (" ".join(heading.title.split()) for heading in headings)
    return tuple(
        title if len(title) <= MAX_HEADING_CHARS else f"{title[: MAX_HEADING_CHARS - 1].rstrip()}…" for title in folded
    )


def _around(document: Document, start: int, end: int) -> tuple[int, int]:
    """Where the pages begin and end, or the sections, that [start, end) stands in; white space around left out."""
    bounds = document.page_starts or tuple(heading.start for heading in document.headings)
    left = max((bound for bound in bounds if bound <= start), default=0)
    right = min((bound for bound in bounds if bound >= end), default=len(document.text))
    region = document.text[left:right]
    left = min(start, left + len(region) - len(region.lstrip()))
    return left, max(end, right - (len(region) - len(region.rstrip())))


def _window(text: str, left: int, right: int, start: int, end: int, max_chars: int) -> tuple[int, int]:
    """As much of [left, right) around [start, end) as may be shown: whole paragraphs if possible, else whole words."""
    room = max(0, max_chars - (end - start))
    before = min(start - left, max(room // 2, room - (right - end)))
    after = min(right - end, room - before)
    first, last = start - before, end + after
    if first > left:  # a boundary in the outer half: a long paragraph next to the run is cut, not left out
        cut = PARAGRAPH.search(text, first, first + before // 2) or SPACE.search(text, first, start)
        first = cut.end() if cut else first
    if last < right:
        cuts = [*PARAGRAPH.finditer(text, last - after // 2, last)] or [*SPACE.finditer(text, end, last)]
        last = cuts[-1].start() if cuts else last
    return first, last
