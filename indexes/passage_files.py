"""The documents and passages of one segment: texts once, a JSON line of facts per document, arrays of places.

Texts stand one after the other in UTF-8; a passage is a range of bytes in them. What grows with the texts is read in
checked pieces, so that opening a large segment reads the arrays only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes.arrays import Arrays
from indexes.checked import CheckedFile, CheckedWriter
from indexes.errors import SettingError
from indexes.passages import Chunk, Document, DocumentFacts, Heading, Passage, page_of

TEXTS, RECORDS = "texts.utf8", "documents.jsonl"
DOCUMENT = np.dtype([("row", "<i8"), ("text", "<i8"), ("record", "<i8"), ("source", "<u8")])
PASSAGE = np.dtype([("begin", "<i8"), ("bytes", "<i4"), ("start", "<i4")])


def _source_hash(source: str) -> int:
    return int.from_bytes(hashlib.sha256(_utf8(source)).digest()[:8], "little")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _byte_offsets(text: str, positions: Sequence[int]) -> dict[int, int]:
    """Where characters stand in the text's UTF-8."""
    found, at, total = {}, 0, 0
    for position in sorted(set(positions)):
        total += len(_utf8(text[at:position]))
        found[position] = total
        at = position
    return found


def record_of(document: Document) -> dict[str, Any]:
    """What is stored of a document beside its text."""
    return {
        "source": document.source,
        "title": document.title,
        "sha256": document.sha256,
        "text_sha256": hashlib.sha256(_utf8(document.text)).hexdigest(),
        "chars": len(document.text),
        "pages": list(document.page_starts),
        "headings": [[heading.level, heading.title, heading.start] for heading in document.headings],
    }


class PassageFilesWriter:
    """Writes documents with their chunks, which get rows in this order."""

    def __init__(self, folder: Path) -> None:
        self.texts, self.records = CheckedWriter(folder / TEXTS), CheckedWriter(folder / RECORDS)
        self._documents: list[tuple[int, int, int, int]] = []
        self._passages: list[tuple[int, int, int]] = []
        self._sources: set[int] = set()

    def add(self, document: Document, chunks: Sequence[Chunk], indexed_at: float | None) -> None:
        """Append. Raises SettingError for a source that is there already, or a chunk that is not in the text."""
        source = _source_hash(document.source)
        if source in self._sources:
            raise SettingError(f"the document {document.source!r} is given twice; give each source once")
        self._sources.add(source)
        self._documents.append((len(self._passages), self.texts.bytes, self.records.bytes, source))
        ends = [chunk.start + len(chunk.text) for chunk in chunks]
        offsets = _byte_offsets(document.text, [*(chunk.start for chunk in chunks), *ends])
        for chunk, end in zip(chunks, ends, strict=True):
            if document.text[chunk.start : end] != chunk.text:
                raise SettingError(f"a passage of {document.source!r} does not stand at its start {chunk.start}")
            begin = offsets[chunk.start]
            self._passages.append((self.texts.bytes + begin, offsets[end] - begin, chunk.start))
        self.texts.write(_utf8(document.text))
        self.records.write(json.dumps(record_of(document) | {"indexed_at": indexed_at}).encode("ascii") + b"\n")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What is to be opened at once."""
        last = (len(self._passages), self.texts.bytes, self.records.bytes, 0)
        return {
            "documents": np.array([*self._documents, last], DOCUMENT),
            "passages": np.array(self._passages, PASSAGE),
        }


class PassageFiles:
    """Reads them; documents by number and passages by row, both within the segment."""

    def __init__(self, texts: CheckedFile, records: CheckedFile, arrays: Arrays) -> None:
        self._texts = texts
        self._records = records
        self._documents, self._passages = arrays["documents"], arrays["passages"]
        self.first_rows: npt.NDArray[np.int64] = self._documents["row"]
        self._sources = self._documents["source"][:-1]

    def numbers(self, source: str) -> list[int]:
        """The documents with this source: one at most, of those that were not deleted."""
        alike = np.flatnonzero(self._sources == _source_hash(source)).tolist()
        return [number for number in alike if self.record(number)["source"] == source]

    def record(self, number: int) -> dict[str, Any]:
        """What is stored of a document beside its text."""
        begin, end = self._documents["record"][number : number + 2].tolist()
        record: dict[str, Any] = json.loads(self._records.read(begin, end))
        return record

    def document(self, number: int) -> Document:
        """A document with its text."""
        record = self.record(number)
        begin, end = self._documents["text"][number : number + 2].tolist()
        text = self._texts.read(begin, end).decode("utf-8", "surrogatepass")
        pages, headings = tuple(record["pages"]), tuple(Heading(*heading) for heading in record["headings"])
        return Document(record["source"], record["title"], text, record["sha256"], pages, headings)

    def headings(self, number: int) -> tuple[Heading, ...]:
        """A document's headings."""
        return tuple(Heading(*heading) for heading in self.record(number)["headings"])

    def indexed_at(self, number: int) -> float | None:
        """When a document came into the index."""
        at: float | None = self.record(number)["indexed_at"]
        return at

    def facts(self, number: int) -> DocumentFacts:
        """What a list of documents shows."""
        record = self.record(number)
        passages = int(self.first_rows[number + 1] - self.first_rows[number])
        pages = len(record["pages"]) or None
        return DocumentFacts(record["source"], record["title"], record["chars"], pages, passages, record["indexed_at"])

    def text(self, row: int) -> str:
        """A passage's text."""
        begin, size, _ = self._passages[row].item()
        return self._texts.read(begin, begin + size).decode("utf-8", "surrogatepass")

    def chunks(self, number: int) -> list[tuple[int, Chunk]]:
        """A document's passages with their rows."""
        rows = range(int(self.first_rows[number]), int(self.first_rows[number + 1]))
        return [(row, Chunk(int(self._passages[row]["start"]), self.text(row))) for row in rows]

    def passage(self, row: int, known_as: int) -> Passage:
        """A passage; `known_as` is its row in the whole index."""
        number = int(np.searchsorted(self.first_rows, row, "right")) - 1
        record, start = self.record(number), int(self._passages[row]["start"])
        name, page = f"{record['source']}#{row - int(self.first_rows[number])}", page_of(record["pages"], start)
        return Passage(known_as, name, record["source"], record["title"], start, self.text(row), page)

    def close(self) -> None:
        """Close the files."""
        self._texts.close()
        self._records.close()
