"""The `index` commands as real processes, over indexes made here without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.documents.indexing import index_files
from app.documents.managing import delete_documents
from tests.app.commands.test_cli import assert_user_error, run
from tests.app.hash_engine import hash_engine


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with an index "notes" of two files, and a third one that was deleted."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("a", "b", "c"):
        (notes / f"{name}.txt").write_text(f"About {name}.")
    engine = hash_engine(tmp_path)
    index_files(engine, engine.paths.indexes / "notes", [notes])
    delete_documents(engine.paths.indexes / "notes", ["notes/c.txt"])
    return tmp_path


def folder(home: Path) -> Path:
    return home / "data" / "indexes" / "notes"


def test_an_index_tells_what_it_is(home: Path) -> None:
    lines = run(home, "index", "info", "notes").stdout.splitlines()
    assert lines[0] == "notes: 2 documents, 2 passages, 0.0 MB"
    assert lines[1].startswith("encoder hash, 33 dimensions, chunks of ")
    assert lines[2:4] == ["generation 2, format 2, vectors Flat", "segment 000001: 2 passages, 1 deleted, Flat, 0.0 MB"]
    assert lines[4:] == [f"follows {home / 'notes'}", f"leaves out {home / 'notes' / 'c.txt'}"]


def test_an_index_tells_programs_what_it_is(home: Path) -> None:
    told = json.loads(run(home, "index", "info", "notes", "--json").stdout)
    assert (told["documents"], told["encoder"], told["dimension"], told["format"]) == (2, "hash", 33, 2)
    assert [segment["deleted_passages"] for segment in told["segments"]] == [1]


def test_a_whole_index_is_verified_and_a_damaged_one_named_with_the_command_that_mends_it(home: Path) -> None:
    assert run(home, "index", "verify", "notes").stdout.startswith("notes: 6 files, 0.0 MB: all as they were written")
    path = folder(home) / "segments" / "000001" / "embeddings.f16"
    path.write_bytes(bytes(path.stat().st_size))
    done = run(home, "index", "verify", "notes")
    assert_user_error(done, f"{path} is damaged", "rebuild it with: python app.py index --rebuild --name notes")


def test_compacting_frees_what_deleted_documents_take(home: Path) -> None:
    told = json.loads(run(home, "index", "compact", "notes", "--json").stdout)
    assert told["bytes"] < told["bytes_before"]
    assert "deleted" not in run(home, "index", "info", "notes").stdout


def test_a_deleted_index_is_gone_and_its_files_are_not(home: Path) -> None:
    assert run(home, "index", "delete", "notes").stdout == "notes is deleted.\n"
    assert not folder(home).exists()
    assert len(list((home / "notes").iterdir())) == 3


@pytest.mark.parametrize("command", ["info", "verify", "compact", "delete"])
def test_an_index_that_is_not_there_is_said_to_be_missing_and_no_folder_is_made(home: Path, command: str) -> None:
    assert_user_error(run(home, "index", command, "nope"), "there is no index named 'nope'")
    assert not (home / "data" / "indexes" / "nope").exists()


def test_a_name_that_cannot_be_is_refused(home: Path) -> None:
    assert_user_error(run(home, "index", "delete", "../notes"), "cannot be the name of an index")
    assert folder(home).exists()


def test_without_a_command_the_index_is_built(home: Path) -> None:
    assert_user_error(run(home, "index", "nowhere", "--name", "n"), "there is no file or folder 'nowhere'")
    assert_user_error(run(home, "index", "--rebuild"), "an index needs a name: --name NAME")
