"""The documents and passages of a whole index, wherever its segments keep them.

Rows count on over all segments; a deleted document's rows stay unused until its segment is merged.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes.live import Live
from indexes.passage_files import PassageFiles
from indexes.passages import Chunk, Document, DocumentFacts, Heading, Passage


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
