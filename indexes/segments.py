"""Segments: folders of files that are written once, each holding everything about some documents of an index.

A segment is written in one pass over documents that are ready, whatever their number: vectors and texts go to the disk
as they come. It is opened by reading its arrays; texts, vectors and postings are read in checked pieces as they are
needed. Which segments an index has, and which of their documents were deleted, is for `indexes.generations` to know.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from indexes.arrays import pack, unpack
from indexes.checked import (
    BLOCK,
    CheckedFile,
    CheckedWriter,
    FileFacts,
    block_of_rows,
    saying_that_it_cannot_be_written,
    write_checked,
)
from indexes.errors import DamagedIndexError, SettingError
from indexes.files import sync
from indexes.live import Live, Range, ranges
from indexes.neighbours import Vectors
from indexes.passage_files import RECORDS, TEXTS, PassageFiles, PassageFilesWriter
from indexes.passages import Chunk, Document
from indexes.postings import PostingsFile, PostingsWriter
from indexes.quantisation import FLAT, TrainedIndex, quantised
from indexes.token_vectors import Quantised, TokenFile
from indexes.vectors import SegmentVectors

EMBEDDINGS, TOKENS, POSTINGS, VECTORS, ARRAYS = (
    "embeddings.f16",
    "tokens.i8",
    "postings.u4",
    "vectors.faiss",  # only of a segment large enough to be quantised
    "arrays",
)
HELD = 1 << 28  # bytes of embeddings that stay in memory once they were read; more are read again
BLOCKS = "blocks of "  # begins the names of arrays that hold the digests of a file's blocks
RESCORED = "rescored"  # the name of an array of one number: candidates of `vectors.faiss`, times those wanted
BLOCK_BYTES = "bytes of blocks of "  # those of how large these are


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document ready to be written: its chunks, their vectors (C, D), and per-token vectors for each or none.

    indexed_at is when it was encoded, in seconds since 1970, if that is known.
    """

    document: Document
    chunks: Sequence[Chunk]
    vectors: Vectors
    tokens: Sequence[Quantised] = field(default_factory=list)
    indexed_at: float | None = None


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What a manifest says of a segment. `deleted` are ranges of its documents' numbers that no longer count, and
    deleted_passages how many passages these have; documents and passages count them too."""

    name: str
    documents: int
    passages: int
    layout: str
    files: Mapping[str, FileFacts]
    deleted: tuple[Range, ...] = ()
    deleted_passages: int = 0

    @property
    def live_documents(self) -> int:
        """How many documents count."""
        return self.documents - sum(end - begin for begin, end in self.deleted)

    @property
    def live_passages(self) -> int:
        """How many passages count."""
        return self.passages - self.deleted_passages

    @property
    def bytes(self) -> int:
        """What it takes on the disk."""
        return sum(file.bytes for file in self.files.values())


class SegmentWriter:
    """Writes a segment into a new folder."""

    def __init__(self, folder: Path, dimension: int, token_vectors: bool) -> None:
        self._folder = folder
        self._dimension = dimension
        self._passages = PassageFilesWriter(folder)
        self._postings = PostingsWriter()
        self._embeddings = CheckedWriter(folder / EMBEDDINGS, block_of_rows(2 * dimension))
        self._postings_file = CheckedWriter(folder / POSTINGS)
        self._tokens = CheckedWriter(folder / TOKENS) if token_vectors else None
        self._token_offsets = [0]
        known = self._passages.texts, self._passages.records, self._embeddings, self._postings_file, self._tokens
        self._writers = [writer for writer in known if writer]
        self._documents, self._rows = 0, 0

    def add(self, item: EncodedDocument) -> None:
        """Append a document. Raises SettingError for vectors of another dimension or number than its passages."""
        count = len(item.chunks)
        if item.vectors.shape != (count, self._dimension) or (self._tokens and len(item.tokens) != count):
            raise SettingError(
                f"the document {item.document.source!r} has {count} passages, vectors {item.vectors.shape} and "
                f"{len(item.tokens)} lists of token vectors; the index wants ({count}, {self._dimension})"
            )
        self._passages.add(item.document, item.chunks, item.indexed_at)
        self._embeddings.write(np.ascontiguousarray(item.vectors, np.float16).tobytes())
        for chunk in item.chunks:
            self._postings.add(chunk.text)
        for tokens in item.tokens if self._tokens else ():
            assert self._tokens is not None
            self._tokens.write(np.ascontiguousarray(tokens, np.int8).tobytes())
            self._token_offsets.append(self._token_offsets[-1] + len(tokens))
        self._documents += 1
        self._rows += count

    def close(self) -> SegmentFacts:
        """Finish it; everything is on the disk afterwards."""
        postings, posting_arrays = self._postings.finish()
        self._postings_file.write(postings)
        arrays = self._passages.arrays() | posting_arrays
        arrays["token_offsets"] = np.array(self._token_offsets, np.int64)
        made = self._quantised()
        files: dict[str, FileFacts] = {}
        for writer in self._writers:
            files[writer.path.name] = writer.close()
            arrays[BLOCKS + writer.path.name] = np.frombuffer(bytes(writer.block_digests), np.uint8)
            arrays[BLOCK_BYTES + writer.path.name] = np.array([writer.block_bytes])
        if made.index:
            files[VECTORS] = write_checked(self._folder / VECTORS, made.index)
            arrays[RESCORED] = np.array([made.rescored])
        files[ARRAYS] = write_checked(self._folder / ARRAYS, pack(arrays))
        with saying_that_it_cannot_be_written(self._folder):
            sync(self._folder)
            sync(self._folder.parent)
        return SegmentFacts(self._folder.name, self._documents, self._rows, str(made.layout), files)

    def _quantised(self) -> TrainedIndex:
        self._embeddings.flush()
        shape = self._rows, self._dimension

        def read(rows: Any) -> Vectors:
            return np.asarray(np.memmap(self._embeddings.path, np.float16, "r", shape=shape)[rows], np.float32)

        return quantised(read, *shape)

    def abandon(self) -> None:
        """Close its files."""
        for writer in self._writers:
            writer.abandon()


def write_segment(
    folder: Path, dimension: int, token_vectors: bool, documents: Iterator[EncodedDocument]
) -> SegmentFacts:
    """Write a segment of these documents into a new folder. Raises IndexStoreError when that cannot be."""
    with saying_that_it_cannot_be_written(folder):
        folder.mkdir()
    writer = SegmentWriter(folder, dimension, token_vectors)
    try:
        for document in documents:
            writer.add(document)
        return writer.close()
    finally:
        writer.abandon()


class Segment:
    """An opened segment; its files stay readable after they are removed. Raises DamagedIndexError, saying `remedy`."""

    def __init__(self, folder: Path, facts: SegmentFacts, dimension: int, remedy: str = "") -> None:
        self.facts = facts
        self._dimension = dimension
        try:
            self._files = {name: CheckedFile(folder / name, file, remedy) for name, file in facts.files.items()}
            self._arrays = unpack(self._files[ARRAYS].whole())
            for name in self._files.keys() - {ARRAYS, VECTORS}:
                size = self._arrays.get(BLOCK_BYTES + name, np.array([BLOCK]))  # segments of old name none
                held = name == EMBEDDINGS and facts.files[name].bytes <= HELD
                self._files[name].with_blocks(self._arrays[BLOCKS + name].tobytes(), int(size[0]), held)
            self.passages = PassageFiles(self._files[TEXTS], self._files[RECORDS], self._arrays)
            tokens = self._files.get(TOKENS)
            self.tokens = TokenFile(tokens, self._arrays["token_offsets"], dimension) if tokens else None
        except KeyError as error:
            raise DamagedIndexError(f"{folder} is damaged: it does not hold {error}; {remedy}") from error

    @functools.cached_property
    def search(self) -> tuple[SegmentVectors, PostingsFile]:
        """What searching needs."""
        made = FLAT
        if VECTORS in self._files:
            rescored = self._arrays.get(RESCORED, [FLAT.rescored])[0]
            made = TrainedIndex(index=self._files[VECTORS].whole(), rescored=int(rescored))
        vectors = SegmentVectors(self._files[EMBEDDINGS], self._dimension, made)
        return vectors, PostingsFile(self._files[POSTINGS].read, self._arrays)

    def facts_without(self, numbers: Iterable[int]) -> SegmentFacts:
        """Its facts, these documents deleted."""
        deleted = ranges(numbers)
        live = Live.without(deleted, self.passages.first_rows, 0)
        return replace(self.facts, deleted=deleted, deleted_passages=self.facts.passages - live.passages)

    def encoded(self, number: int) -> EncodedDocument:
        """A document as it was written, but for the vectors' precision."""
        chunks = self.passages.chunks(number)
        rows = range(int(self.passages.first_rows[number]), int(self.passages.first_rows[number + 1]))
        data = self._files[EMBEDDINGS].read(rows.start * self._dimension * 2, rows.stop * self._dimension * 2)
        vectors = np.frombuffer(data, np.float16).reshape(-1, self._dimension).astype(np.float32)
        tokens = [self.tokens.of(row) for row in rows] if self.tokens else []
        document, at = self.passages.document(number), self.passages.indexed_at(number)
        return EncodedDocument(document, [chunk for _, chunk in chunks], vectors, tokens, at)
