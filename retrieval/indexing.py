"""Builds and updates a passage index: find files, read, chunk, encode what is new, write a generation."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from indexes.errors import DocumentError, IndexStoreError, NothingToIndexError
from indexes.passages import Document
from indexes.store import EncodedDocument, IndexSettings, PassageIndex, open_index, write_index
from indexes.token_vectors import Quantised, quantise
from retrieval.chunking import chunk_document
from retrieval.documents import find_files, read_document, storable

if TYPE_CHECKING:
    from retrieval.encoders import Encoder

ENCODED_AT_ONCE = 64

Progress = Callable[[str, int, int], None]  # what is being done, how much is done, of how much


@dataclass(slots=True)
class Report:
    """What an indexing run did; `skipped` maps a file to the reason.

    excluded is how many files were left out because they were deleted from the index before; replaced are the
    names of uploads that took the place of earlier ones.
    """

    documents: int = 0
    passages: int = 0
    encoded: int = 0
    removed: int = 0
    layout: str = ""
    skipped: dict[str, str] = field(default_factory=dict)
    excluded: int = 0
    replaced: list[str] = field(default_factory=list)


def find_sources(roots: Sequence[Path], skipped: dict[str, str]) -> dict[str, Path]:
    """Every file below the roots by its source: the path below its root's parent, or all of it if that is taken."""
    files: dict[Path, Path] = {}
    for root in roots:
        for file in find_files(root, skipped):
            files.setdefault(file, root)  # a root within another one changes no file's source
    sources: dict[str, Path] = {}
    for file, root in files.items():
        short = storable(file.relative_to(root.parent).as_posix())
        sources[short if short not in sources else storable(file.as_posix())] = file
    return sources


def read_files(
    roots: Sequence[Path],
    skipped: dict[str, str],
    progress: Progress,
    excluded: Container[str] = (),
    known: Mapping[str, Document] = MappingProxyType({}),
) -> list[Document]:
    """Read every file below the roots but the excluded ones; those that are `known`, by source, were read already."""
    files = {source: file for source, file in find_sources(roots, skipped).items() if str(file) not in excluded}
    documents: list[Document] = []
    for done, (source, file) in enumerate(files.items()):
        progress("Reading files", done, len(files))
        try:
            documents.append(known[source] if source in known else read_document(file, source))
        except DocumentError as error:
            skipped[storable(str(file))] = str(error)
    progress("Reading files", len(files), len(files))
    return documents


@contextlib.contextmanager
def _previous(folder: Path, settings: IndexSettings) -> Iterator[dict[str, EncodedDocument]]:
    """What the index holds already, if it was made with the same settings; a damaged one counts as none."""
    try:
        index: PassageIndex | None = open_index(folder)
    except IndexStoreError:
        index = None
    same = index is not None and _without_files(index.settings) == _without_files(settings)
    try:
        yield index.encoded_documents() if index is not None and same else {}
    finally:
        if index is not None:
            index.passages.close()


def _without_files(settings: IndexSettings) -> IndexSettings:
    return replace(settings, roots=(), excluded=())


def _again(before: EncodedDocument | None, document: Document) -> EncodedDocument | None:
    """What was encoded before, if the document has the same chunks; its headings and its file's hash may differ."""
    if before is None or (before.document.text, before.document.page_starts) != (document.text, document.page_starts):
        return None
    return replace(before, document=document)


def build_index(
    folder: Path,
    settings: IndexSettings,
    documents: Sequence[Document],
    encoder: Encoder,
    progress: Progress,
    rebuild: bool = False,
) -> Report:
    """Write the index of exactly these documents; unless `rebuild`, those that did not change are not encoded again.

    Raises NothingToIndexError when there are none; the old index stays whatever happens.
    """
    if not documents:
        raise NothingToIndexError("none of the files could be read: nothing was indexed")
    with _previous(folder, settings) as before:
        again = {} if rebuild else {item.source: _again(before.get(item.source), item) for item in documents}
        kept = {source: encoded for source, encoded in again.items() if encoded is not None}
        new = [document for document in documents if document.source not in kept]
        encoded = kept | _encode(new, settings, encoder, progress)
        ordered = [encoded[document.source] for document in documents]
        layout = write_index(folder, settings, ordered)
        removed = len(set(before) - {document.source for document in documents})
    return Report(len(documents), sum(len(item.chunks) for item in ordered), len(new), removed, layout)


def _encode(
    documents: Sequence[Document], settings: IndexSettings, encoder: Encoder, progress: Progress
) -> dict[str, EncodedDocument]:
    """Chunk and encode; chunks of all documents are encoded together, so that small files cost no more."""
    chunks = [chunk_document(document, settings.chunk_chars) for document in documents]
    texts = [chunk.text for of_document in chunks for chunk in of_document]
    dense: list[np.ndarray] = []
    tokens: list[Quantised] = []
    for begin in range(0, len(texts), ENCODED_AT_ONCE):
        progress("Encoding passages", begin, len(texts))
        batch = texts[begin : begin + ENCODED_AT_ONCE]
        if settings.token_vectors:
            vectors, per_token = encoder.encode_tokens(batch)
            tokens.extend(quantise(item) for item in per_token)
        else:
            vectors = encoder.encode_passages(batch)
        dense.extend(vectors)
    progress("Encoding passages", len(texts), len(texts))
    encoded: dict[str, EncodedDocument] = {}
    begin = 0
    for document, of_document in zip(documents, chunks, strict=True):
        end = begin + len(of_document)
        vectors = np.stack(dense[begin:end])
        encoded[document.source] = EncodedDocument(document, of_document, vectors, tokens[begin:end], time.time())
        begin = end
    return encoded
