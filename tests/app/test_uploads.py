from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine import Engine
from app.indexing import no_progress
from app.settings import Paths, Settings, paths
from app.uploads import (
    LONGEST_NAME,
    add_uploads,
    delete_uploads,
    has_uploads,
    list_uploads,
    new_token,
    original_upload,
    private_index,
    reindex_uploads,
    safe_name,
)
from indexes.errors import DamagedIndexError, IndexStoreError, NothingToIndexError, SettingError
from indexes.files import current_generation
from indexes.store import open_index
from retrieval.documents import PARSERS
from tests.app.test_indexing import hash_engine
from tests.hash_encoder import HashEncoder
from tests.retrieval.files import pdf

TOKEN, OTHER = "0" * 32, "1" * 32


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(Settings(), home=Paths(tmp_path / "data", paths().cache))
    made.encoder = HashEncoder()
    return made


def _upload(engine: Engine, folder: Path, **files: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return add_uploads(engine, TOKEN, [folder / f"{name}.txt" for name in files], no_progress).skipped


def _kept(engine: Engine) -> list[str]:
    return sorted(file.name for file in (engine.paths.uploads / TOKEN / "uploads").iterdir())


def test_unreadable_uploads_are_listed_by_name_and_not_kept(engine: Engine, tmp_path: Path) -> None:
    assert _upload(engine, tmp_path / "in", good="some words", empty="") == {"empty.txt": "empty"}
    assert _kept(engine) == ["good.txt"]


def test_when_nothing_can_be_read_nothing_is_kept(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NothingToIndexError):
        _upload(engine, tmp_path / "in", empty="")
    assert _kept(engine) == []


def test_uploads_add_up(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", first="one text")
    _upload(engine, tmp_path / "in", second="another text")
    assert len(open_index(private_index(engine, TOKEN)).passages) == 2


@pytest.mark.parametrize("token", ["", "..", "../" * 11, "G" * 32, None])
def test_what_is_no_token_opens_no_folder(engine: Engine, token: str) -> None:
    with pytest.raises(SettingError, match="reload the page"):
        private_index(engine, token)


def test_tokens_differ() -> None:
    assert new_token() != new_token()


def listed(engine: Engine, token: str = TOKEN) -> list[str]:
    return [upload.facts.source for upload in list_uploads(engine, token)]


def text_of(engine: Engine, source: str) -> str:
    document = open_index(private_index(engine, TOKEN)).passages.document(source)
    assert document is not None
    return document.text


# Names


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
    assert (report.documents, _kept(engine), listed(engine)) == (1, ["_[2J.evil.txt"], ["uploads/_[2J.evil.txt"])
    assert not (tmp_path / "sent").exists()


def test_a_link_is_not_followed(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "a.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(NothingToIndexError, match=r"a\.txt: not a regular file"):
        add_uploads(engine, TOKEN, [tmp_path / "a.txt"])
    assert _kept(engine) == []


# Files of the same name


def test_a_later_file_replaces_an_earlier_one_of_its_name_and_the_report_says_so(
    engine: Engine, tmp_path: Path
) -> None:
    _upload(engine, tmp_path / "in", a="old text", b="other")
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
    _upload(engine, tmp_path / "in", a="old text")
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
    _upload(engine, tmp_path / "in", a="text", b="text")
    (engine.paths.uploads / TOKEN / "uploads" / "a.txt").write_bytes(b"\0")
    assert _upload(engine, tmp_path / "in", c="text") == {"a.txt": "binary, not text"}
    assert _kept(engine) == ["a.txt", "b.txt", "c.txt"]


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


# Listing and deleting


def test_uploads_are_listed_with_their_size(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="Käse")
    (upload,) = list_uploads(engine, TOKEN)
    assert (upload.facts.source, upload.facts.chars, upload.bytes) == ("uploads/a.txt", 4, 5)
    assert upload.to_json()["indexed_at"] > 0


def test_nobody_sees_another_person_s_uploads(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text")
    assert (listed(engine, OTHER), has_uploads(engine, OTHER), has_uploads(engine, TOKEN)) == ([], False, True)
    with pytest.raises(SettingError, match=r"there is no uploaded document 'uploads/a\.txt'"):
        delete_uploads(engine, OTHER, ["uploads/a.txt"])
    with pytest.raises(SettingError, match="there is no such uploaded file"):
        original_upload(engine, OTHER, "uploads/a.txt")
    assert _kept(engine) == ["a.txt"]
    assert not (engine.paths.uploads / OTHER).exists()


def test_a_deleted_upload_is_gone_with_its_file_and_comes_not_back(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    assert (listed(engine), _kept(engine)) == (["uploads/b.txt"], ["b.txt"])
    _upload(engine, tmp_path / "in", c="text c")
    assert listed(engine) == ["uploads/b.txt", "uploads/c.txt"]


def test_a_deleted_upload_can_be_uploaded_again(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    _upload(engine, tmp_path / "in", a="text a")
    assert listed(engine) == ["uploads/a.txt", "uploads/b.txt"]


def test_with_the_last_upload_the_index_goes(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    delete_uploads(engine, TOKEN, listed(engine))
    assert (listed(engine), has_uploads(engine, TOKEN), _kept(engine)) == ([], False, [])
    _upload(engine, tmp_path / "in", c="text c")
    assert listed(engine) == ["uploads/c.txt"]


def test_an_index_that_is_gone_is_not_kept_in_memory(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    _upload(engine, tmp_path / "in", a="text a")
    opened = weakref.ref(engine.open(private_index(engine, TOKEN)).passages)
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    gc.collect()
    assert opened() is None


@pytest.mark.parametrize("source", ["a.txt", "../uploads/a.txt", "uploads/../uploads/a.txt", "", "uploads/b.txt"])
def test_when_one_document_is_not_there_none_is_deleted(engine: Engine, tmp_path: Path, source: str) -> None:
    _upload(engine, tmp_path / "in", a="text a")
    with pytest.raises(SettingError, match="there is no uploaded document"):
        delete_uploads(engine, TOKEN, ["uploads/a.txt", source])
    assert (listed(engine), _kept(engine)) == (["uploads/a.txt"], ["a.txt"])


def test_a_document_whose_file_is_gone_can_be_deleted(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    (engine.paths.uploads / TOKEN / "uploads" / "a.txt").unlink()
    assert [upload.bytes for upload in list_uploads(engine, TOKEN)] == [None, 6]
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    assert listed(engine) == ["uploads/b.txt"]


DELETER = """
import sys, time
from pathlib import Path
import app.documents
from tests.app.test_indexing import hash_engine
from app.uploads import delete_uploads
def slow(folder, settings, documents):
    print("writing", flush=True)
    time.sleep(60)
app.documents.write_index = slow
delete_uploads(hash_engine(Path(sys.argv[1])), sys.argv[2], ["uploads/a.txt"])
"""


def test_a_kill_while_deleting_leaves_a_document_that_can_be_deleted_again(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    process = subprocess.Popen(
        [sys.executable, "-c", DELETER, str(tmp_path), TOKEN], stdout=subprocess.PIPE, cwd=os.getcwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert listed(engine) == ["uploads/a.txt", "uploads/b.txt"]
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    assert (listed(engine), _kept(engine)) == (["uploads/b.txt"], ["b.txt"])


# Encoding again


def test_uploads_are_encoded_again_from_their_files(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    (current_generation(private_index(engine, TOKEN))[0] / "passages.sqlite").write_bytes(b"torn")
    with pytest.raises(DamagedIndexError, match=r"; re-index your uploads$"):
        list_uploads(engine, TOKEN)
    assert reindex_uploads(engine, TOKEN).encoded == 2
    assert listed(engine) == ["uploads/a.txt", "uploads/b.txt"]


def test_reindexing_without_uploads_says_so(engine: Engine) -> None:
    with pytest.raises(SettingError, match="there are no uploaded files"):
        reindex_uploads(engine, TOKEN)
    with pytest.raises(IndexStoreError, match="upload files first"):
        engine.open(private_index(engine, TOKEN))


def test_a_reindexing_lists_unreadable_files_by_name_and_keeps_them(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", a="text a", b="text b")
    (engine.paths.uploads / TOKEN / "uploads" / "a.txt").write_bytes(b"")
    assert reindex_uploads(engine, TOKEN).skipped == {"a.txt": "empty"}
    assert _kept(engine) == ["a.txt", "b.txt"]


# The original file


def test_the_original_of_an_upload_is_its_owner_s_file(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "a.PDF").write_bytes(pdf("text"))
    add_uploads(engine, TOKEN, [tmp_path / "a.PDF"])
    original = original_upload(engine, TOKEN, "uploads/a.PDF")
    assert original.path.read_bytes().startswith(b"%PDF")
    assert (original.name, original.media_type, original.inline) == ("a.PDF", "application/pdf", True)


@pytest.mark.parametrize("suffix", ["html", "htm", "md", "txt", "rst"])
def test_only_a_pdf_may_be_opened_on_our_address(engine: Engine, tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.{suffix}").write_text("<script>alert(1)</script> text")
    add_uploads(engine, TOKEN, [tmp_path / f"a.{suffix}"])
    original = original_upload(engine, TOKEN, f"uploads/a.{suffix}")
    assert (original.media_type, original.inline) == ("application/octet-stream", False)


@pytest.mark.parametrize(
    "source",
    [
        "", "a.txt", "uploads/", "uploads/..", "uploads/../uploads/a.txt", "uploads//a.txt", "/etc/passwd",
        "uploads/../my-uploads/CURRENT", "my-uploads/CURRENT", "uploads/b.txt", "uploads/link.txt", "uploads/a.txt\0",
        f"../{OTHER}/uploads/secret.txt", f"uploads/../../{OTHER}/uploads/secret.txt", "uploads/%2e%2e/a.txt",
    ],
)  # fmt: skip
def test_no_other_file_is_given(engine: Engine, tmp_path: Path, source: str) -> None:
    _upload(engine, tmp_path / "in", a="text")
    (tmp_path / "secret.txt").write_text("another person's")
    add_uploads(engine, OTHER, [tmp_path / "secret.txt"])
    (engine.paths.uploads / TOKEN / "uploads" / "link.txt").symlink_to("/etc/passwd")
    with pytest.raises(SettingError, match="there is no such uploaded file"):
        original_upload(engine, TOKEN, source)


@pytest.mark.parametrize("token", ["", "..", f"{TOKEN}/../{OTHER}", TOKEN.upper() + "\n"])
def test_what_is_no_token_gets_nothing(engine: Engine, token: str) -> None:
    for call in (list_uploads, reindex_uploads, has_uploads):
        with pytest.raises(SettingError, match="reload the page"):
            call(engine, token)
    with pytest.raises(SettingError, match="reload the page"):
        delete_uploads(engine, token, ["a"])
    with pytest.raises(SettingError, match="reload the page"):
        original_upload(engine, token, "uploads/a.txt")
