"""PDF: the text of each page; headings are bookmarks whose words stand on the page that they lead to."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pypdf
from pypdf.errors import FileNotDecryptedError
from pypdf.generic import Destination

from indexes.errors import DocumentError
from retrieval.parsers.parsed import MAX_TITLE, Mark, Parsed, moved, respaced

MAX_BOOKMARKS = 2000


def parse_pdf(data: bytes) -> Parsed:
    """All pages. Raises DocumentError if they need a password."""
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentError("encrypted: it needs a password")
    try:
        pages = [page.extract_text() for page in reader.pages]
    except FileNotDecryptedError as error:
        raise DocumentError("encrypted: it needs a password") from error
    starts, position = [], 0
    for page in pages:
        starts.append(position)
        position += len(page) + 2
    marks = (mark for number, found in _headings(reader, pages).items() for mark in moved(found, starts[number]))
    return Parsed("\n\n".join(pages), tuple(starts), tuple(marks))


def _headings(reader: pypdf.PdfReader, pages: Sequence[str]) -> dict[int, list[Mark]]:
    """The bookmarks' titles on each page, by the page's number from 0; those whose words it does not hold left out."""
    try:
        bookmarks = list(itertools.islice(_bookmarks(reader), MAX_BOOKMARKS))
    except Exception:  # pypdf raises whatever it likes on broken outlines, and the pages can be read without
        return {}
    marks: dict[int, list[Mark]] = {}
    folded: dict[int, str] = {}
    for level, number, title in bookmarks:
        words = " ".join(title.split())
        if number not in folded:
            folded[number] = f" {' '.join(pages[number].split())} "  # the white space of a title is not the page's
        start = folded[number].find(f" {words} ")
        if words and start >= 0:
            marks.setdefault(number, []).append(Mark(level, start + 1, start + 1 + len(words)))
    return {number: respaced(found, folded[number], pages[number]) for number, found in marks.items()}


def _bookmarks(reader: pypdf.PdfReader) -> Iterator[tuple[int, int, str]]:
    """The level, page number from 0, and title of each bookmark."""
    waiting: list[tuple[int, Any]] = [(0, reader.outline)]
    while waiting:
        level, item = waiting.pop()
        if isinstance(item, list):
            waiting.extend((level + 1, below) for below in reversed(item))
        elif isinstance(item, Destination):
            number = reader.get_destination_page_number(item)
            if number is not None and 0 <= number < len(reader.pages):
                yield level, number, str(item.title or "")[:MAX_TITLE]
