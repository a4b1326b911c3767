"""The documents of an index: list them, delete some, encode all again. The old index stays until the new one is whole.

Knows folders of indexes; whose they are, and which files lie behind an upload, is for `app.documents.uploads` to know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.remedies import saying_what_to_do
from app.documents.indexing import build_python_docs, index_files, no_progress
from indexes.errors import SettingError
from indexes.files import current_generation, remove_index, write_lock
from indexes.maintenance import merge_due
from indexes.passage_store import PassageStore
from indexes.passages import Document, DocumentFacts
from indexes.store import change_index, check_name, open_index, open_passages
from retrieval.indexing import Progress, Report, find_sources
from retrieval.python_docs import PYTHON_DOCS

if TYPE_CHECKING:
    from app.answering.engine import Engine


@dataclass(frozen=True, slots=True)
class Deleted:
    """How many documents are left (0: the index is gone), and which files will not be indexed again by themselves."""

    left: int
    files: list[Path]


def list_documents(folder: Path, private: bool = False) -> list[DocumentFacts]:
    """What there is to tell of each document, by source. Raises IndexStoreError saying what to do."""
    with _passages(folder, private) as store:
        return store.facts()


def whole_document(folder: Path, source: str) -> Document:
    """A document with its text. Raises SettingError for a source that is not in the index, IndexStoreError."""
    with _passages(folder) as store:
        document = store.document(source)
    if document is None:
        raise _unknown(folder, [source])
    return document


@contextlib.contextmanager
def _passages(folder: Path, private: bool = False) -> Iterator[PassageStore]:
    with saying_what_to_do(folder, private), contextlib.closing(open_passages(folder)) as store:
        yield store


def _unknown(folder: Path, sources: Sequence[str]) -> SettingError:
    listed = ", ".join(map(repr, sources))
    see = f"see what there is with: python app.py documents list --index {folder.name}"
    return SettingError(f"there is no document {listed} in index {folder.name!r}; {see}")


def delete_documents(
    folder: Path, sources: Sequence[str], progress: Progress = no_progress, private: bool = False
) -> Deleted:
    """Take documents out of an index, all of those named or none; with the last one the index itself goes.

    Files stay where they are, and are left out of the index until somebody gives them by name again. A private index
    leaves none out: its files go with the documents.
    Raises SettingError for a source that is not in the index, IndexStoreError.
    """
    if folder.name == PYTHON_DOCS:
        raise SettingError(f"{PYTHON_DOCS!r} is the built-in corpus, which always is whole; choose another index")
    with saying_what_to_do(folder, private):
        check_name(folder.name)
        current_generation(folder)  # before the lock, which would make the folder
    with write_lock(folder):
        with saying_what_to_do(folder, private):
            index = open_index(folder, search=False)
            known = {source for source in sources if index.passages.where(source)}
        if unknown := [source for source in sources if source not in known]:
            raise _unknown(folder, unknown)
        progress("Writing the index", 0, 1)
        files: list[Path] = []
        if left := index.generation.documents - len(known):
            files = [] if private else _files(index.settings.roots, sources)
            excluded = dict.fromkeys([*index.settings.excluded, *map(str, files)])
            change_index(index, replace(index.settings, excluded=tuple(excluded)), deleted=known)
            merge_due(folder)
        else:
            remove_index(folder)
        progress("Writing the index", 1, 1)
    return Deleted(left, [file for file in files if file.exists()])


def _files(roots: Sequence[str], sources: Sequence[str]) -> list[Path]:
    """The files behind sources; of one that is gone for now, wherever it may come back."""
    paths = [Path(root) for root in roots]
    present = find_sources([path for path in paths if path.exists()], {})
    files: list[Path] = []
    for source in sources:
        if source in present:
            files.append(present[source])
        else:
            files.extend(path.parent / source for path in paths if (path.parent / source).is_relative_to(path))
    return files


def reindex(engine: Engine, folder: Path, progress: Progress = no_progress) -> Report | None:
    """Read and encode every document again. Files that cannot be read are in the report, and leave the index.

    Raises NothingToIndexError if none can be, and IndexStoreError; the index stays as it was.
    """
    if folder.name == PYTHON_DOCS:
        return build_python_docs(engine, progress, rebuild=True)
    return index_files(engine, folder, [], progress, rebuild=True)
