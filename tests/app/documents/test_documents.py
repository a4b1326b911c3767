"""Documents of an index: listed, deleted, encoded again; the old index stays until the new one is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.documents.indexing import build_python_docs, index_files
from app.documents.managing import Deleted, delete_documents, list_documents, reindex, whole_document
from indexes.errors import DamagedIndexError, IndexStoreError, NothingToIndexError, SettingError
from indexes.files import current_generation, write_lock
from indexes.store import names, open_index, write_index
from retrieval.python_docs import PYTHON_DOCS
from tests.app.hash_engine import encoded, hash_engine
from tests.indexes.small import old_index
from tests.retrieval.files import pdf


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("About apples.")
    (folder / "b.md").write_text("# About\n\nbears")
    (folder / "c.pdf").write_bytes(pdf("cats", "cows"))
    return folder


def sources(folder: Path) -> list[str]:
    return [facts.source for facts in list_documents(folder)]


def test_documents_are_listed_by_source_with_their_size(made: tuple[Engine, Path]) -> None:
    _, folder = made
    listed = [(facts.source, facts.title, facts.pages, facts.passages) for facts in list_documents(folder)]
    assert listed == [
        ("notes/a.txt", "a.txt", None, 1),
        ("notes/b.md", "b.md", None, 1),
        ("notes/c.pdf", "c.pdf", 2, 2),
    ]


def test_a_whole_document_is_given_by_its_source(made: tuple[Engine, Path]) -> None:
    _, folder = made
    assert whole_document(folder, "notes/b.md").text == "About\n\nbears"
    with pytest.raises(SettingError, match=r"no document 'nope' in index 'notes'; see .* documents list --index notes"):
        whole_document(folder, "nope")


def test_what_an_index_has_is_not_told_of_a_missing_or_damaged_one(made: tuple[Engine, Path]) -> None:
    _, folder = made
    with pytest.raises(IndexStoreError, match=r"no index named 'other'; build it with: python app\.py index"):
        list_documents(folder.parent / "other")
    (folder / "segments" / "000001" / "documents.jsonl").write_bytes(b"torn")
    with pytest.raises(DamagedIndexError, match=r"documents\.jsonl is damaged.*; rebuild it with: python app\.py"):
        list_documents(folder)


# Deleting


def test_a_deleted_document_is_gone_and_nothing_is_encoded(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    before = open_index(folder).encoded_documents()["notes/c.pdf"]
    encoded(engine).clear()
    assert delete_documents(folder, ["notes/a.txt", "notes/b.md"]) == Deleted(1, [notes / "a.txt", notes / "b.md"])
    after = open_index(folder).encoded_documents()
    assert (list(after), encoded(engine)) == (["notes/c.pdf"], [])
    assert after["notes/c.pdf"].document == before.document
    assert after["notes/c.pdf"].vectors.tolist() == before.vectors.tolist()
    assert after["notes/c.pdf"].indexed_at == before.indexed_at


def test_a_deleted_document_stays_out_while_its_file_stays_where_it_is(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    delete_documents(folder, ["notes/a.txt"])
    (notes / "d.txt").write_text("About dogs.")
    assert (notes / "a.txt").exists()
    for _ in range(2):
        assert index_files(engine, folder, [notes]).excluded == 1
        assert sources(folder) == ["notes/b.md", "notes/c.pdf", "notes/d.txt"]


def test_a_deleted_document_stays_out_of_a_damaged_index_that_is_rebuilt(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    delete_documents(folder, ["notes/a.txt"])
    (folder / "generations" / "000002.json").write_bytes(b"torn")
    index_files(engine, folder, [], rebuild=True)
    assert sources(folder) == ["notes/b.md", "notes/c.pdf"]


def test_a_deleted_document_comes_back_when_its_file_is_given_by_name(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    delete_documents(folder, ["notes/a.txt", "notes/b.md"])
    index_files(engine, folder, [notes / "a.txt"])
    assert sources(folder) == ["notes/a.txt", "notes/c.pdf"]
    index_files(engine, folder, [])
    assert sources(folder) == ["notes/a.txt", "notes/c.pdf"]


def test_a_file_that_was_away_when_its_document_was_deleted_stays_out_too(
    made: tuple[Engine, Path], notes: Path, tmp_path: Path
) -> None:
    engine, folder = made
    notes.rename(tmp_path / "away")
    assert delete_documents(folder, ["notes/a.txt"]) == Deleted(2, [])
    (tmp_path / "away").rename(notes)
    index_files(engine, folder, [])
    assert sources(folder) == ["notes/b.md", "notes/c.pdf"]


def test_of_two_files_with_one_short_name_the_one_that_was_meant_is_deleted(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    folder = engine.paths.indexes / "both"
    files = [tmp_path / parent / "notes" / "a.txt" for parent in ("x", "y")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(f"About {file.parent.parent.name}.")
    index_files(engine, folder, [file.parent for file in files])
    assert delete_documents(folder, ["notes/a.txt"]).files == [files[0]]
    index_files(engine, folder, [])
    assert open_index(folder).passages.texts() == ["About y."]
    assert sources(folder) == [str(files[1])]


def test_with_the_last_document_the_index_goes(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    assert delete_documents(folder, sources(folder)) == Deleted(0, [])
    assert (names(engine.paths.indexes), list(engine.paths.indexes.iterdir())) == ([], [])


def test_when_one_source_is_not_there_nothing_is_deleted(made: tuple[Engine, Path]) -> None:
    _, folder = made
    before = current_generation(folder)
    with pytest.raises(SettingError, match=r"there is no document '\.\./b', 'c' in index 'notes'"):
        delete_documents(folder, ["notes/a.txt", "../b", "c"])
    assert current_generation(folder) == before


def test_the_built_in_corpus_stays_whole(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="'python-docs' is the built-in corpus"):
        delete_documents(tmp_path / PYTHON_DOCS, ["python-docs/with"])


def test_deleting_from_a_missing_index_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(IndexStoreError, match="there is no index named 'nope'"):
        delete_documents(tmp_path / "nope", ["a"])
    assert list(tmp_path.iterdir()) == []


DELETER = """
import sys, time
from pathlib import Path
import indexes.generations as generations
from app.documents.managing import delete_documents
def slow(path, data):
    print("half written", flush=True)
    time.sleep(60)
generations.write_checked = slow
delete_documents(Path(sys.argv[1]), ["notes/a.txt"])
"""


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_a_kill_while_deleting_leaves_the_old_index(made: tuple[Engine, Path], kill: signal.Signals) -> None:
    engine, folder = made
    process = subprocess.Popen(
        [sys.executable, "-c", DELETER, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=os.getcwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"half written\n"
    process.send_signal(kill)
    process.communicate(timeout=30)
    assert len(open_index(folder).encoded_documents()) == 3
    delete_documents(folder, ["notes/a.txt"])
    index_files(engine, folder, [])
    assert sources(folder) == ["notes/b.md", "notes/c.pdf"]


# Encoding again


def test_reindexing_encodes_everything_again(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    encoded(engine).clear()
    steps: list[str] = []
    report = reindex(engine, folder, lambda what, done, total: steps.append(what))
    assert report is not None
    assert (report.encoded, len(encoded(engine)), set(steps)) == (3, 4, {"Reading files", "Encoding passages"})


def test_reindexing_lists_the_files_that_cannot_be_read(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    (notes / "a.txt").write_bytes(b"\0")
    report = reindex(engine, folder)
    assert report is not None
    assert report.skipped == {str(notes / "a.txt"): "binary, not text"}
    assert sources(folder) == ["notes/b.md", "notes/c.pdf"]


def test_a_reindexing_that_fails_leaves_the_old_index(
    made: tuple[Engine, Path], notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, folder = made
    monkeypatch.setattr(engine.encoder, "encode_tokens", lambda texts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        reindex(engine, folder)
    for file in notes.iterdir():
        file.unlink()
    with pytest.raises(NothingToIndexError):
        reindex(engine, folder)
    assert len(open_index(folder).encoded_documents()) == 3


def test_the_built_in_corpus_is_encoded_again(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    build_python_docs(engine)
    report = reindex(engine, engine.paths.indexes / PYTHON_DOCS)
    assert report is not None
    assert report.encoded == report.documents > 70


def test_a_built_in_corpus_of_an_older_format_is_made_anew(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    folder = old_index(engine.paths.indexes / PYTHON_DOCS)
    assert build_python_docs(engine) is not None
    assert engine.open(folder).passages.headings("python-docs/with")[0].title == 'The "with" statement'


def test_documents_of_which_only_the_headings_changed_are_not_encoded(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    index = open_index(folder)
    old = [replace(item, document=replace(item.document, headings=())) for item in index.encoded_documents().values()]
    write_index(folder, index.settings, old)
    encoded(engine).clear()
    assert index_files(engine, folder, []).encoded == 0
    assert ([heading.title for heading in open_index(folder).passages.headings("notes/b.md")], encoded(engine)) == (
        ["About"],
        [],
    )


def test_an_index_that_somebody_else_writes_is_neither_deleted_from_nor_encoded_again(
    made: tuple[Engine, Path],
) -> None:
    engine, folder = made
    errors: list[str] = []

    def try_both() -> None:
        for attempt in (lambda: delete_documents(folder, ["notes/a.txt"]), lambda: reindex(engine, folder)):
            try:
                attempt()
            except IndexStoreError as error:
                errors.append(str(error))

    with write_lock(folder):
        thread = threading.Thread(target=try_both)
        thread.start()
        thread.join()
    assert [error.partition(" (")[0] for error in errors] == ["notes is being written by another process"] * 2
    assert len(sources(folder)) == 3
