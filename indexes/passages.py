"""Documents and their passages in SQLite: one read-only file per generation of an index.

Files written before there were headings are read as having none.
"""

from __future__ import annotations

import bisect
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

SCHEMA = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
    sha256 TEXT NOT NULL, text TEXT NOT NULL, page_starts TEXT NOT NULL);
CREATE TABLE passages (
    row INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents (number),
    ordinal INTEGER NOT NULL, start INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX passages_of_document ON passages (document);
"""
LATER_TABLES = """
CREATE {kind} headings (document INTEGER, level INTEGER NOT NULL, title TEXT NOT NULL, start INTEGER NOT NULL);
CREATE INDEX {place}headings_of_document ON headings (document, start);
CREATE {kind} times (document INTEGER PRIMARY KEY, indexed_at REAL NOT NULL);
"""


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


def write_passages(
    path: Path,
    documents: Iterable[tuple[Document, Sequence[Chunk]]],
    indexed_at: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Write documents with their chunks, which get rows in this order, to a new file."""
    with sqlite3.connect(path) as database:
        database.executescript(SCHEMA + LATER_TABLES.format(kind="TABLE", place=""))
        for document, chunks in documents:
            pages = json.dumps(document.page_starts)
            values = (document.source, document.title, document.sha256, document.text, pages)
            number = database.execute(
                "INSERT INTO documents (source, title, sha256, text, page_starts) VALUES (?, ?, ?, ?, ?)", values
            ).lastrowid
            database.executemany(
                "INSERT INTO passages (row, document, ordinal, start, text) "
                "VALUES ((SELECT coalesce(max(row), -1) + 1 FROM passages), ?, ?, ?, ?)",
                [(number, ordinal, chunk.start, chunk.text) for ordinal, chunk in enumerate(chunks)],
            )
            database.executemany(
                "INSERT INTO headings VALUES (?, ?, ?, ?)",
                [(number, heading.level, heading.title, heading.start) for heading in document.headings],
            )
            if document.source in indexed_at:
                database.execute("INSERT INTO times VALUES (?, ?)", (number, indexed_at[document.source]))
    database.close()


class PassageStore:
    """Reads such a file; usable from any thread."""

    def __init__(self, path: Path) -> None:
        self._uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._database = sqlite3.connect(self._uri, uri=True, check_same_thread=False)
        tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('headings', 'times')"
        self.has_headings = self._database.execute(tables).fetchone() == (2,)
        if not self.has_headings:  # an older file: empty tables stand in, outside it
            later = LATER_TABLES.format(kind="TEMP TABLE", place="temp.")
            self._database.executescript(f"PRAGMA temp_store = MEMORY; {later}")

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM passages").fetchone()[0])

    def get(self, rows: Iterable[int]) -> list[Passage]:
        """The passages in these rows, in the order asked for. Raises KeyError for a row that is not there."""
        query = (
            "SELECT source, title, ordinal, start, passages.text, page_starts "
            "FROM passages JOIN documents ON document = number WHERE row = ?"
        )
        found: list[Passage] = []
        for row in rows:
            line = self._database.execute(query, (row,)).fetchone()
            if line is None:
                raise KeyError(row)
            source, title, ordinal, start, text, pages = line
            page = page_of(json.loads(pages), start)
            found.append(Passage(row, f"{source}#{ordinal}", source, title, start, text, page))
        return found

    def texts(self) -> list[str]:
        """The text of every passage, by row."""
        return [text for (text,) in self._database.execute("SELECT text FROM passages ORDER BY row")]

    def documents(self) -> Iterator[tuple[Document, list[tuple[int, Chunk]]]]:
        """Every document with the rows and chunks of its passages."""
        for number, source, title, sha256, text, pages in self._database.execute("SELECT * FROM documents"):
            lines = self._database.execute(
                "SELECT row, start, text FROM passages WHERE document = ? ORDER BY ordinal", (number,)
            )
            chunks = [(row, Chunk(start, chunk)) for row, start, chunk in lines]
            yield Document(source, title, text, sha256, tuple(json.loads(pages)), self._headings(number)), chunks

    def document(self, source: str) -> Document | None:
        """The document with this source, or None."""
        line = self._database.execute("SELECT * FROM documents WHERE source = ?", (source,)).fetchone()
        if line is None:
            return None
        number, _, title, sha256, text, pages = line
        return Document(source, title, text, sha256, tuple(json.loads(pages)), self._headings(number))

    def headings(self, source: str) -> tuple[Heading, ...]:
        """The headings of the document with this source, in order; none if there is no such document."""
        line = self._database.execute("SELECT number FROM documents WHERE source = ?", (source,)).fetchone()
        return () if line is None else self._headings(line[0])

    def _headings(self, number: int) -> tuple[Heading, ...]:
        lines = self._database.execute(
            "SELECT level, title, start FROM headings WHERE document = ? ORDER BY start, rowid", (number,)
        )
        return tuple(Heading(*line) for line in lines)

    def facts(self) -> list[DocumentFacts]:
        """What a list of the documents shows, by source."""
        lines = self._database.execute(
            "SELECT source, title, length(documents.text), page_starts, count(row), indexed_at FROM documents "
            "LEFT JOIN passages ON passages.document = number LEFT JOIN times ON times.document = number "
            "GROUP BY number ORDER BY source"
        )
        return [
            DocumentFacts(source, title, chars, len(json.loads(pages)) or None, passages, at)
            for source, title, chars, pages, passages, at in lines
        ]

    def close(self) -> None:
        """Close the file."""
        self._database.close()
