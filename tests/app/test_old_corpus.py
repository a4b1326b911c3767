"""The built-in corpus as an earlier version indexed it, without headings."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import indexes.store
from app.engine import Engine
from app.indexing import build_python_docs
from indexes.files import write_lock
from indexes.passages import Chunk, Document, write_passages
from indexes.store import EncodedDocument, open_index, write_index
from retrieval.python_docs import PYTHON_DOCS
from tests.app.test_indexing import encoded, hash_engine


@pytest.fixture
def old_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Path]:
    """An engine, and the built-in corpus as it was indexed before there were headings."""
    engine = hash_engine(tmp_path)
    folder = engine.paths.indexes / PYTHON_DOCS
    build_python_docs(engine)
    index = open_index(folder)
    old = [_without_headings(item) for item in index.encoded_documents().values()]
    with monkeypatch.context() as patch:
        patch.setattr(indexes.store, "write_passages", _write_old_passages)
        write_index(folder, index.settings, old)
    encoded(engine).clear()
    return engine, folder


def test_a_built_in_corpus_from_before_there_were_headings_gets_them_without_encoding(
    old_corpus: tuple[Engine, Path],
) -> None:
    engine, folder = old_corpus
    assert not engine.open(folder).passages.has_headings
    build_python_docs(engine)
    assert engine.open(folder).passages.headings("python-docs/with")[0].title == 'The "with" statement'
    assert encoded(engine) == []


def test_an_old_built_in_corpus_that_somebody_else_writes_is_used_as_it_is(old_corpus: tuple[Engine, Path]) -> None:
    engine, folder = old_corpus
    built: list[object] = []
    with write_lock(folder):
        thread = threading.Thread(target=lambda: built.append(build_python_docs(engine)))
        thread.start()
        thread.join()
    assert (built, engine.open(folder).passages.has_headings) == ([None], False)


def _without_headings(item: EncodedDocument) -> EncodedDocument:
    return replace(item, document=replace(item.document, headings=()), indexed_at=None)


def _write_old_passages(path: Path, documents: Iterable[tuple[Document, Sequence[Chunk]]], times: object) -> None:
    write_passages(path, documents)
    with sqlite3.connect(path) as database:
        database.executescript("DROP TABLE headings; DROP TABLE times;")
    database.close()
