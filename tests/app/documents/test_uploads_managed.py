"""Uploads are listed, deleted, encoded again, and given back to their owner, and to nobody else."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.documents.uploads import (
    add_uploads,
    delete_uploads,
    has_uploads,
    list_uploads,
    original_upload,
    private_index,
    reindex_uploads,
)
from indexes.errors import DamagedIndexError, IndexStoreError, SettingError
from tests.app.hash_engine import hash_engine
from tests.app.uploading import OTHER, TOKEN, kept, listed, upload_texts
from tests.retrieval.files import pdf


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return hash_engine(tmp_path)


# Listing and deleting


def test_uploads_are_listed_with_their_size(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="Käse")
    (upload,) = list_uploads(engine, TOKEN)
    assert (upload.facts.source, upload.facts.chars, upload.bytes) == ("uploads/a.txt", 4, 5)
    assert upload.to_json()["indexed_at"] > 0


def test_nobody_sees_another_person_s_uploads(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text")
    assert (listed(engine, OTHER), has_uploads(engine, OTHER), has_uploads(engine, TOKEN)) == ([], False, True)
    with pytest.raises(SettingError, match=r"there is no uploaded document 'uploads/a\.txt'"):
        delete_uploads(engine, OTHER, ["uploads/a.txt"])
    with pytest.raises(SettingError, match="there is no such uploaded file"):
        original_upload(engine, OTHER, "uploads/a.txt")
    assert kept(engine) == ["a.txt"]
    assert not (engine.paths.uploads / OTHER).exists()


def test_a_deleted_upload_is_gone_with_its_file_and_comes_not_back(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    assert (listed(engine), kept(engine)) == (["uploads/b.txt"], ["b.txt"])
    upload_texts(engine, tmp_path / "in", c="text c")
    assert listed(engine) == ["uploads/b.txt", "uploads/c.txt"]


def test_a_deleted_upload_can_be_uploaded_again(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    upload_texts(engine, tmp_path / "in", a="text a")
    assert listed(engine) == ["uploads/a.txt", "uploads/b.txt"]


def test_with_the_last_upload_the_index_goes(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    delete_uploads(engine, TOKEN, listed(engine))
    assert (listed(engine), has_uploads(engine, TOKEN), kept(engine)) == ([], False, [])
    upload_texts(engine, tmp_path / "in", c="text c")
    assert listed(engine) == ["uploads/c.txt"]


def test_an_index_that_is_gone_is_not_kept_in_memory(tmp_path: Path) -> None:
    engine = hash_engine(tmp_path)
    upload_texts(engine, tmp_path / "in", a="text a")
    opened = weakref.ref(engine.open(private_index(engine, TOKEN)).passages)
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    gc.collect()
    assert opened() is None


@pytest.mark.parametrize("source", ["a.txt", "../uploads/a.txt", "uploads/../uploads/a.txt", "", "uploads/b.txt"])
def test_when_one_document_is_not_there_none_is_deleted(engine: Engine, tmp_path: Path, source: str) -> None:
    upload_texts(engine, tmp_path / "in", a="text a")
    with pytest.raises(SettingError, match="there is no uploaded document"):
        delete_uploads(engine, TOKEN, ["uploads/a.txt", source])
    assert (listed(engine), kept(engine)) == (["uploads/a.txt"], ["a.txt"])


def test_a_document_whose_file_is_gone_can_be_deleted(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    (engine.paths.uploads / TOKEN / "uploads" / "a.txt").unlink()
    assert [upload.bytes for upload in list_uploads(engine, TOKEN)] == [None, 6]
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    assert listed(engine) == ["uploads/b.txt"]


DELETER = """
import sys, time
from pathlib import Path
import app.documents.managing
from tests.app.hash_engine import hash_engine
from app.documents.uploads import delete_uploads
def slow(index, settings, deleted):
    print("writing", flush=True)
    time.sleep(60)
app.documents.managing.change_index = slow
delete_uploads(hash_engine(Path(sys.argv[1])), sys.argv[2], ["uploads/a.txt"])
"""


def test_a_kill_while_deleting_leaves_a_document_that_can_be_deleted_again(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    process = subprocess.Popen(
        [sys.executable, "-c", DELETER, str(tmp_path), TOKEN], stdout=subprocess.PIPE, cwd=os.getcwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert listed(engine) == ["uploads/a.txt", "uploads/b.txt"]
    delete_uploads(engine, TOKEN, ["uploads/a.txt"])
    assert (listed(engine), kept(engine)) == (["uploads/b.txt"], ["b.txt"])


# Encoding again


def test_uploads_are_encoded_again_from_their_files(engine: Engine, tmp_path: Path) -> None:
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    (private_index(engine, TOKEN) / "segments" / "000001" / "documents.jsonl").write_bytes(b"torn")
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
    upload_texts(engine, tmp_path / "in", a="text a", b="text b")
    (engine.paths.uploads / TOKEN / "uploads" / "a.txt").write_bytes(b"")
    assert reindex_uploads(engine, TOKEN).skipped == {"a.txt": "empty"}
    assert kept(engine) == ["a.txt", "b.txt"]


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
    upload_texts(engine, tmp_path / "in", a="text")
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
