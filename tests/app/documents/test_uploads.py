from __future__ import annotations

from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.documents.uploads import (
    add_uploads,
    has_uploads,
    new_token,
    private_index,
)
from indexes.errors import NothingToIndexError, SettingError
from indexes.store import open_index
from tests.app.hash_engine import hash_engine
from tests.app.uploading import TOKEN, kept, upload_texts


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return hash_engine(tmp_path)


def test_unreadable_uploads_are_listed_by_name_and_not_kept(engine: Engine, tmp_path: Path) -> None:
    assert upload_texts(engine, tmp_path / "in", good="some words", empty="") == {"empty.txt": "empty"}
    assert kept(engine) == ["good.txt"]


def test_when_nothing_can_be_read_nothing_is_kept(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NothingToIndexError):
        upload_texts(engine, tmp_path / "in", empty="")
    assert kept(engine) == []


def test_uploads_add_up(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", first="one text")
    upload_texts(engine, tmp_path / "in", second="another text")
    assert len(open_index(private_index(engine, TOKEN)).passages) == 2


@pytest.mark.parametrize("token", ["", "..", "../" * 11, "G" * 32, None])
def test_what_is_no_token_opens_no_folder(engine: Engine, token: str) -> None:
    with pytest.raises(SettingError, match="reload the page"):
        private_index(engine, token)


def test_tokens_differ() -> None:
    assert new_token() != new_token()


def text_of(engine: Engine, source: str) -> str:
    document = open_index(private_index(engine, TOKEN)).passages.document(source)
    assert document is not None
    return document.text


# Files of the same name


def test_a_later_file_replaces_an_earlier_one_of_its_name_and_the_report_says_so(
    engine: Engine, tmp_path: Path
) -> None:
    upload_texts(engine, tmp_path / "in", a="old text", b="other")
    (tmp_path / "in" / "a.txt").write_text("new text")
    report = add_uploads(engine, TOKEN, [tmp_path / "in" / "a.txt"])
    assert (report.replaced, report.encoded, report.documents) == (["a.txt"], 1, 2)
    assert text_of(engine, "uploads/a.txt") == "new text"


def test_of_two_files_of_one_name_sent_together_the_later_is_kept(engine: Engine, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"text {name}")
    report = add_uploads(engine, TOKEN, [("x/a.txt", tmp_path / "one"), ("y/a.txt", tmp_path / "two")])
    assert (report.replaced, report.documents, text_of(engine, "uploads/a.txt")) == (["a.txt"], 1, "text two")


def test_a_file_that_cannot_be_read_does_not_replace_an_earlier_one(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="old text")
    (tmp_path / "in" / "a.txt").write_bytes(b"\0")
    report = add_uploads(engine, TOKEN, [tmp_path / "in" / "a.txt"])
    assert (report.replaced, report.skipped) == ([], {"a.txt": "binary, not text"})
    assert text_of(engine, "uploads/a.txt") == "old text"


def test_an_unsupported_type_is_refused_by_its_own_name(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "upload.txt").write_text("x")
    with pytest.raises(NothingToIndexError, match=r"a\.exe: files of type \.exe are not supported"):
        add_uploads(engine, TOKEN, [("a.exe", tmp_path / "upload.txt")])


def test_nothing_sent_says_so(engine: Engine) -> None:
    with pytest.raises(NothingToIndexError, match="there were none"):
        add_uploads(engine, TOKEN, [])
    assert not has_uploads(engine, TOKEN)


def test_an_earlier_file_that_cannot_be_read_any_more_is_listed_and_kept(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text", b="text")
    (engine.paths.uploads / TOKEN / "uploads" / "a.txt").write_bytes(b"\0")
    assert upload_texts(engine, tmp_path / "in", c="text") == {"a.txt": "binary, not text"}
    assert kept(engine) == ["a.txt", "b.txt", "c.txt"]


def test_progress_is_told_in_steps(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    steps: list[tuple[str, int, int]] = []
    add_uploads(engine, TOKEN, [tmp_path / "a.txt"], lambda *step: steps.append(step))
    assert steps[0] == ("Reading uploads", 0, 1)
    assert [what for what, done, total in steps if done == total] == [
        "Reading uploads",
        "Reading files",
        "Encoding passages",
    ]
