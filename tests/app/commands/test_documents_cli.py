"""The `documents` commands as real processes, over indexes made here without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.documents.indexing import index_files
from tests.app.commands.test_cli import assert_user_error, run
from tests.app.hash_engine import hash_engine
from tests.retrieval.files import pdf

GUIDE = "Intro.\n\n# Setup\n\nGet it.\n\n## Windows\n\nRun the *installer* now.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with an index "notes" of three files."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "guide.md").write_text(GUIDE)
    (notes / "report.pdf").write_bytes(pdf("one", "two"))
    (notes / "\x1b[31mred [b].txt").write_text("red \x1b[2J text")
    engine = hash_engine(tmp_path)
    index_files(engine, engine.paths.indexes / "notes", [notes])
    return tmp_path


def test_documents_are_listed_for_people(home: Path) -> None:
    done = run(home, "documents", "list", "--index", "notes")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("notes/␛[31mred [b].txt: 13 characters, 1 passages, indexed 20")
    assert lines[2].startswith("notes/report.pdf: 2 pages, 10 characters, 2 passages, indexed 20")
    assert (lines[3], done.returncode) == ("notes: 3 documents, 4 passages", 0)


def test_documents_are_listed_for_programs(home: Path) -> None:
    found = json.loads(run(home, "documents", "list", "-i", "notes", "--json").stdout)
    assert found["index"] == "notes"
    facts = found["documents"][1]
    assert facts.pop("indexed_at") > 1.7e9
    assert facts == {
        "source": "notes/guide.md", "title": "guide.md", "chars": 55, "pages": None, "passages": 1
    }  # fmt: skip


def test_a_document_is_shown_as_it_was_indexed(home: Path) -> None:
    done = run(home, "documents", "show", "notes/guide.md", "-i", "notes")
    assert done.stdout == "Intro.\n\nSetup\n\nGet it.\n\nWindows\n\nRun the installer now.\n"
    red = run(home, "documents", "show", "notes/\x1b[31mred [b].txt", "-i", "notes")
    assert red.stdout == "red ␛[2J text\n"
    shown = json.loads(run(home, "documents", "show", "notes/guide.md", "-i", "notes", "--json").stdout)
    assert shown["headings"][1] == {"level": 2, "title": "Windows", "start": 24}


def test_a_place_in_a_document_is_shown_with_its_headings(home: Path) -> None:
    at = ("documents", "show", "notes/guide.md", "-i", "notes", "--start", "37", "--end", "50")
    assert run(home, *at).stdout == "guide.md › Setup › Windows\nWindows\n\nRun the installer now.\n"
    place = json.loads(run(home, *at, "--json").stdout)
    assert (place["marked"], place["headings"], place["page"]) == ("the installer", ["Setup", "Windows"], None)


def test_deleting_says_which_files_stay(home: Path) -> None:
    done = run(home, "documents", "delete", "notes/guide.md", "--index", "notes")
    assert "notes: 1 documents deleted, 2 left." in done.stdout
    assert f"{home / 'notes' / 'guide.md'} stays where it is" in done.stdout
    listed = json.loads(run(home, "documents", "list", "-i", "notes", "--json").stdout)["documents"]
    assert [facts["source"] for facts in listed] == ["notes/\x1b[31mred [b].txt", "notes/report.pdf"]


def test_deleting_tells_programs_what_is_left(home: Path) -> None:
    arguments = ["documents", "delete", "notes/guide.md", "notes/report.pdf", "-i", "notes", "--json"]
    assert json.loads(run(home, *arguments).stdout) == {
        "index": "notes",
        "deleted": ["notes/guide.md", "notes/report.pdf"],
        "left": 1,
        "files_left_out": [str(home / "notes" / "guide.md"), str(home / "notes" / "report.pdf")],
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "-i", "nothere"], ["there is no index named 'nothere'", "python app.py index PATH..."]),
        (["list", "-i", "../x"], ["cannot be the name of an index"]),
        (["show", "nope", "-i", "notes"], ["there is no document 'nope'", "documents list --index notes"]),
        (["show", "notes/guide.md", "-i", "notes", "--start", "9999"], ["characters 9999 to 10000 are not in"]),
        (["show", "notes/guide.md", "-i", "notes", "--end", "9"], ["--end needs --start"]),
        (["delete", "../guide.md", "-i", "notes"], ["there is no document '../guide.md'"]),
        (["delete", "python-docs/with"], ["'python-docs' is the built-in corpus"]),
        (["delete", "-i", "notes"], ["Missing argument"]),
    ],
)
def test_what_cannot_be_done_is_said(home: Path, arguments: list[str], words: list[str]) -> None:
    assert_user_error(run(home, "documents", *arguments), *words)


@pytest.mark.parametrize("command", ["list", "show", "delete"])
def test_every_command_s_help_has_an_example(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, "documents", command, "--help")
    assert f"python app.py documents {command}" in done.stdout
