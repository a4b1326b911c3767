"""What browsers call files, and what becomes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.engine import Engine
from app.documents.uploads import LONGEST_NAME, add_uploads, safe_name
from indexes.errors import NothingToIndexError
from retrieval.documents import PARSERS
from tests.app.hash_engine import hash_engine
from tests.app.uploading import TOKEN, kept, listed


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return hash_engine(tmp_path)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("notes.txt", "notes.txt"),
        ("Über uns – 日本 😀.pdf", "Über uns – 日本 😀.pdf"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("/etc/cron.d/x.md", "x.md"),
        ("C:\\Users\\me\\a.docx", "a.docx"),
        ("..", "document"),
        ("", "document"),
        (".", "document"),
        (".hidden.txt", "hidden.txt"),
        (".txt", "document.txt"),
        ("a\0b\nc\x1b[31m.txt", "a_b_c_[31m.txt"),
        ("evil\u202etxt.exe.pdf", "evil_txt.exe.pdf"),
        ("\udcff.txt", "_.txt"),
        ('a<b>:|?*".html', "a_b______.html"),
        ("a.txt ", "a.txt"),
        ("a.txt.", "a.txt"),
        ("a.", "a"),
        ("no suffix", "no suffix"),
        ("a." + "x" * 50, "a." + "x" * 50),
        ("e\u0301.txt", "\u00e9.txt"),
        ("x" * 1000 + ".pdf", "x" * 146 + ".pdf"),
        ("日" * 1000 + ".pdf", "日" * 48 + ".pdf"),
    ],
)
def test_a_name_from_a_browser_becomes_a_plain_file_s_name(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(name=st.text())
def test_no_name_leaves_its_folder_or_hides(name: str) -> None:
    safe = safe_name(name)
    assert safe == os.path.basename(safe)
    assert "\\" not in safe
    assert safe.isprintable()
    assert safe.strip(". ") == safe != ""
    assert len(safe.encode()) <= LONGEST_NAME
    assert safe_name(safe) == safe


@pytest.mark.parametrize("suffix", sorted(PARSERS))
def test_a_name_of_any_length_keeps_its_suffix(suffix: str) -> None:
    assert safe_name("name " * 100 + suffix.upper()).endswith(suffix.upper())


def test_a_file_with_a_hostile_name_is_kept_below_its_owner_s_folder(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "sent").write_text("some words")
    report = add_uploads(engine, TOKEN, [("../../../\x1b[2J.evil.txt", tmp_path / "sent")])
    assert (report.documents, kept(engine), listed(engine)) == (1, ["_[2J.evil.txt"], ["uploads/_[2J.evil.txt"])
    assert not (tmp_path / "sent").exists()


def test_a_link_is_not_followed(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "a.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(NothingToIndexError, match=r"a\.txt: not a regular file"):
        add_uploads(engine, TOKEN, [tmp_path / "a.txt"])
    assert kept(engine) == []
