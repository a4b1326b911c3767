"""Builds and updates a passage index: find files, read, chunk, encode what is new, write the change."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from indexes.errors import IndexStoreError, NothingToIndexError
from indexes.files import write_lock
from indexes.generations import IndexSettings
from indexes.maintenance import merge_due
from indexes.passages import Document
from indexes.segments import EncodedDocument
from indexes.store import PassageIndex, change_index, open_index, write_index
from indexes.token_vectors import Quantised
from retrieval.documents import find_files, storable
from retrieval.workers import Read, ThisProcess, Workers, read_here

if TYPE_CHECKING:
    from retrieval.encoders import Encoder, Vectors

ENCODED_AT_ONCE = 64
NO_TOKENS = np.zeros((0, 0), np.int8)

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
    read: Read = read_here,
) -> list[Document]:
    """Read every file below the roots but the excluded ones; those that are `known`, by source, were read already."""
    files = {source: file for source, file in find_sources(roots, skipped).items() if str(file) not in excluded}
    new = read([(file, source) for source, file in files.items() if source not in known])
    documents: list[Document] = []
    for done, (source, file) in enumerate(files.items()):
        progress("Reading files", done, len(files))
        found = known[source] if source in known else next(new)
        if isinstance(found, Document):
            documents.append(found)
        else:
            skipped[storable(str(file))] = str(found)
    progress("Reading files", len(files), len(files))
    return documents


def build_index(
    folder: Path,
    settings: IndexSettings,
    documents: Sequence[Document],
    encoder: Encoder,
    progress: Progress,
    rebuild: bool = False,
    workers: Workers | None = None,
) -> Report:
    """Make the index one of exactly these documents; unless `rebuild`, those that did not change are not touched.

    `workers` chunk and encode, with the same encoder; this process if there are none.
    Raises NothingToIndexError when there are none, IndexStoreError; the old index stays whatever happens.
    """
    if not documents:
        raise NothingToIndexError("none of the files could be read: nothing was indexed")
    workers = workers or ThisProcess(encoder)
    with write_lock(folder):
        before = _previous(folder, settings)
        known = before.passages.sources() if before else []
        gone = set(known) - {document.source for document in documents}
        if before is None or rebuild:
            made = write_index(folder, settings, _encoded(documents, settings, workers, progress))
            return Report(made.documents, made.passages, made.documents, len(gone), made.layout)
        return _change(before, settings, documents, gone, workers, progress)


def add_documents(
    folder: Path, settings: IndexSettings, documents: Sequence[Document], encoder: Encoder, progress: Progress
) -> Report:
    """Add documents to an index, or replace those with the same sources; all others stay.

    Raises SettingError for settings of other vectors than the index holds, IndexStoreError.
    """
    with write_lock(folder):
        return _change(open_index(folder, search=False), settings, documents, (), ThisProcess(encoder), progress)


def _change(
    before: PassageIndex,
    settings: IndexSettings,
    documents: Sequence[Document],
    gone: Collection[str],
    workers: Workers,
    progress: Progress,
) -> Report:
    changed = [document for document in documents if not before.holds(document)]
    same_text = [document for document in changed if before.holds_text(document)]
    same = {document.source for document in same_text}
    new = [document for document in changed if document.source not in same]
    again = (replace(before.encoded(document.source), document=document) for document in same_text)
    made = before.generation
    if changed or gone or made.settings != settings:
        added = itertools.chain(again, _encoded(new, settings, workers, progress))
        change_index(before, settings, added, gone)
        made = merge_due(before.folder)
    return Report(made.documents, made.passages, len(new), len(gone), made.layout)


def _previous(folder: Path, settings: IndexSettings) -> PassageIndex | None:
    """What the index holds already, if it was made with the same settings; a damaged one counts as none."""
    try:
        index = open_index(folder, search=False)
    except IndexStoreError:
        return None
    return index if index.settings.encoding == settings.encoding else None


def _encoded(
    documents: Sequence[Document], settings: IndexSettings, workers: Workers, progress: Progress
) -> Iterator[EncodedDocument]:
    """Chunk and encode, as the documents are asked for: vectors of a large corpus do not fit into memory.

    Chunks of all documents are encoded together, so that small files cost no more.
    """
    chunks = list(workers.chunk(documents, settings.chunk_chars))
    texts = [chunk.text for of_document in chunks for chunk in of_document]
    vectors = _vectors(texts, settings.token_vectors, workers, progress)
    for document, of_document in zip(documents, chunks, strict=True):
        pairs = list(itertools.islice(vectors, len(of_document)))
        dense = np.array([vector for vector, _ in pairs], np.float32).reshape(len(pairs), settings.dimension)
        tokens = [per_token for _, per_token in pairs] if settings.token_vectors else []
        yield EncodedDocument(document, of_document, dense, tokens, time.time())
    progress("Encoding passages", len(texts), len(texts))


def _vectors(
    texts: Sequence[str], token_vectors: bool, workers: Workers, progress: Progress
) -> Iterator[tuple[Vectors, Quantised]]:
    """For each text its vector, and its token vectors or none."""
    batches = [texts[begin : begin + ENCODED_AT_ONCE] for begin in range(0, len(texts), ENCODED_AT_ONCE)]
    progress("Encoding passages", 0, len(texts))
    for done, (dense, per_token) in enumerate(workers.encode(batches, token_vectors), 1):
        yield from zip(dense, per_token or [NO_TOKENS] * len(dense), strict=True)
        progress("Encoding passages", min(done * ENCODED_AT_ONCE, len(texts)), len(texts))
