from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.documents.indexing import build_python_docs, index_files
from app.setup.settings import Paths, Settings
from indexes.errors import DamagedIndexError, IndexFormatError, IndexStoreError, NothingToIndexError, SettingError
from indexes.files import CURRENT, write_lock
from indexes.store import open_index
from retrieval.python_docs import PYTHON_DOCS
from tests.app.hash_engine import encoded, hash_engine
from tests.hash_encoder import HashEncoder
from tests.indexes.small import FILES, old_index
from tests.retrieval.files import pdf, word


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("About apples.")
    (folder / "b.md").write_text("# About *bears*")
    return folder


def texts(folder: Path) -> list[str]:
    return open_index(folder).passages.texts()


def test_files_of_every_supported_type_are_indexed(tmp_path: Path) -> None:
    contents = {
        "a.txt": b"text one", "b.md": b"# text *two*", "c.html": b"<p>text three", "d.rst": b"text *four*",
        "e.pdf": pdf("text five"), "f.docx": word("text six"),
    }  # fmt: skip
    (tmp_path / "in").mkdir()
    for name, data in contents.items():
        (tmp_path / "in" / name).write_bytes(data)
    engine = hash_engine(tmp_path)
    report = index_files(engine, engine.paths.indexes / "all", [tmp_path / "in"])
    expected = ["text one", "text two", "text three", "text four", "text five", "text six"]
    assert (report.skipped, texts(engine.paths.indexes / "all")) == ({}, expected)


def test_again_without_paths_follows_the_same_folders(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    (notes / "c.txt").write_text("About cats.")
    (notes / "a.txt").unlink()
    (notes / "b.md").write_text("About bees.")
    encoded(engine).clear()
    report = index_files(engine, folder, [])
    assert (report.encoded, report.removed, encoded(engine)) == (2, 1, ["About bees.", "About cats."])
    assert texts(folder) == ["About bees.", "About cats."]


def test_nothing_changed_encodes_nothing(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    encoded(engine).clear()
    index_files(engine, folder, [])
    assert encoded(engine) == []


def test_paths_add_up(made: tuple[Engine, Path], tmp_path: Path) -> None:
    engine, folder = made
    (tmp_path / "more.txt").write_text("More.")
    index_files(engine, folder, [tmp_path / "more.txt"])
    assert texts(folder) == ["About apples.", "About bears", "More."]


def test_a_folder_that_is_gone_takes_its_documents_along(
    made: tuple[Engine, Path], tmp_path: Path, notes: Path
) -> None:
    engine, folder = made
    (tmp_path / "more.txt").write_text("More.")
    notes.rename(tmp_path / "elsewhere")
    report = index_files(engine, folder, [tmp_path / "more.txt"])
    assert (report.removed, texts(folder)) == (2, ["More."])


def test_unreadable_files_are_skipped_with_the_reason(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    files = {
        "empty.txt": (b"", "empty"),
        "binary.txt": (b"\0\1\2", "binary, not text"),
        "locked.pdf": (pdf("x", password="pw"), "encrypted: it needs a password"),
        "scan.pdf": (pdf(""), "holds no text (scanned pages?)"),
    }
    for name, (data, _) in files.items():
        (notes / name).write_bytes(data)
    report = index_files(engine, folder, [])
    assert report.skipped == {str(notes / name): reason for name, (_, reason) in files.items()}
    assert report.documents == 2


def test_nothing_readable_lists_why_and_leaves_the_old_index(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    for file in notes.iterdir():
        file.write_bytes(b"\0")
    with pytest.raises(NothingToIndexError, match=r"so nothing was indexed:\n.*a\.txt: binary, not text"):
        index_files(engine, folder, [])
    assert texts(folder) == ["About apples.", "About bears"]


def test_a_path_that_is_not_there_is_refused(made: tuple[Engine, Path], tmp_path: Path) -> None:
    engine, folder = made
    with pytest.raises(SettingError, match=r"there is no file or folder '.*nowhere'"):
        index_files(engine, folder, [tmp_path / "nowhere"])


def test_a_new_index_needs_a_path(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    with pytest.raises(SettingError, match="nothing to index: give files or folders"):
        index_files(engine, engine.paths.indexes / "new", [])
    assert not (engine.paths.indexes / "new").exists()


def test_the_built_in_corpus_keeps_its_name(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    with pytest.raises(SettingError, match="is the built-in corpus; choose another name"):
        index_files(engine, engine.paths.indexes / PYTHON_DOCS, [tmp_path])


@pytest.mark.parametrize("name", [*FILES, CURRENT])
def test_a_damaged_index_names_the_file_and_a_command_that_mends_it(made: tuple[Engine, Path], name: str) -> None:
    engine, folder = made
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedIndexError) as raised:
        hash_engine(engine.paths.data.parent).open(folder)
    assert str(path) in str(raised.value)
    assert "rebuild it with: python app.py index --rebuild --name notes" in str(raised.value)
    index_files(engine, folder, [], rebuild=True)
    assert texts(folder) == ["About apples.", "About bears"]


def test_an_index_of_another_encoder_names_a_command_that_makes_it_anew(
    made: tuple[Engine, Path], tmp_path: Path
) -> None:
    _, folder = made
    other = Engine(Settings(encoder="other", device="cpu"), home=Paths(tmp_path / "data", tmp_path / "cache"))
    other.encoder = HashEncoder("other", dimension=7)
    with pytest.raises(
        IndexStoreError, match=r"made with the encoder hash, not other; rebuild it with: .*--encoder other"
    ):
        other.open(folder)
    index_files(other, folder, [], rebuild=True)
    assert other.open(folder).settings.encoder == "other"


def test_an_index_of_another_dimension_names_a_command_that_makes_it_anew(
    made: tuple[Engine, Path], tmp_path: Path
) -> None:
    _, folder = made
    other = hash_engine(tmp_path)
    other.encoder = HashEncoder(dimension=7)
    with pytest.raises(IndexStoreError, match=r"of 33 dimensions, and hash makes 7; rebuild it with: .*--encoder hash"):
        other.open(folder)


def test_an_index_of_an_older_format_names_the_command_that_makes_it_anew(
    made: tuple[Engine, Path], tmp_path: Path
) -> None:
    engine, folder = made
    shutil.rmtree(folder)
    old_index(folder, str(tmp_path / "notes"))
    with pytest.raises(IndexFormatError, match=r"'notes' has format 1; .* index --rebuild --name notes$"):
        engine.open(folder)
    index_files(engine, folder, [])
    assert texts(folder) == ["About apples.", "About bears"]


@pytest.mark.parametrize("name", ["texts.utf8", "embeddings.f16", "postings.u4", "tokens.i8"])
def test_damage_that_is_found_by_a_question_names_the_command_too(made: tuple[Engine, Path], name: str) -> None:
    engine, folder = made
    path = folder / "segments" / "000001" / name
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(DamagedIndexError, match=rf"{name} is damaged: .*; rebuild it with: .*--rebuild --name notes$"):
        engine.find("apples", folder)


def test_an_index_that_was_replaced_is_opened_anew(made: tuple[Engine, Path], notes: Path) -> None:
    engine, folder = made
    before = engine.open(folder)
    (notes / "a.txt").write_text("About pears.")
    index_files(engine, folder, [])
    after = engine.open(folder)
    assert (before.passages.texts()[0], after.passages.texts()) == ("About apples.", ["About bears", "About pears."])


def test_an_index_is_opened_once(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    assert engine.open(folder) is engine.open(folder)


INDEXER = """
import sys, time
from pathlib import Path
from app.documents.indexing import index_files
from tests.app.hash_engine import hash_engine
engine = hash_engine(Path(sys.argv[1]))
encode = engine.encoder.encode_tokens
def slow(texts):
    print("encoding", flush=True)
    time.sleep(60)
    return encode(texts)
engine.encoder.encode_tokens = slow
index_files(engine, engine.paths.indexes / "notes", [])
"""


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_a_second_writer_is_refused_while_one_encodes_and_takes_over_when_it_is_killed(
    made: tuple[Engine, Path], notes: Path, tmp_path: Path, kill: signal.Signals
) -> None:
    engine, folder = made
    (notes / "c.txt").write_text("About cats.")
    process = subprocess.Popen(
        [sys.executable, "-c", INDEXER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.getcwd(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"encoding\n"
    start = time.monotonic()
    with pytest.raises(IndexStoreError, match="being written by another process"):
        index_files(engine, folder, [])
    assert time.monotonic() - start < 1
    process.send_signal(kill)
    process.communicate(timeout=30)
    assert texts(folder) == ["About apples.", "About bears"]
    index_files(engine, folder, [])
    assert texts(folder) == ["About apples.", "About bears", "About cats."]


def test_the_built_in_corpus_is_built_once(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    first, second = build_python_docs(engine), build_python_docs(engine)
    assert first is not None
    assert (first.documents > 70, second) == (True, None)


def test_the_built_in_corpus_is_encoded_again_when_asked(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    first, again = build_python_docs(engine), build_python_docs(engine, rebuild=True)
    assert first is not None
    assert again is not None
    assert (again.encoded, again.encoded > 0) == (first.encoded, True)


def test_a_lock_that_nobody_holds_is_no_hindrance(made: tuple[Engine, Path]) -> None:
    engine, folder = made
    with write_lock(folder):
        pass
    assert index_files(engine, folder, []).documents == 2
