from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexes.errors import NothingToIndexError
from indexes.passages import Document, Heading
from indexes.store import IndexSettings, open_index
from retrieval.indexing import Report, build_index, read_files
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, document, no_progress
from tests.retrieval.files import pdf

ONE, TWO = document("one", "First text."), document("two", "Second text.")


def build(
    folder: Path,
    *documents: Document,
    encoder: HashEncoder | None = None,
    settings: IndexSettings = SETTINGS,
    rebuild: bool = False,
) -> tuple[Report, list[str]]:
    """What the run did, and the texts that it encoded."""
    encoder = encoder or HashEncoder()
    return build_index(folder, settings, documents, encoder, no_progress, rebuild), encoder.encoded


def test_the_first_run_encodes_every_chunk_once(tmp_path: Path) -> None:
    report, encoded = build(tmp_path / "i", ONE, TWO)
    assert (report, encoded) == (Report(2, 2, 2, 0, "Flat"), ["First text.", "Second text."])


def test_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE, TWO)
    assert build(tmp_path / "i", ONE, TWO) == (Report(2, 2, 0, 0, "Flat"), [])


def test_only_a_changed_document_is_encoded_again(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE, TWO)
    report, encoded = build(tmp_path / "i", ONE, document("two", "Other text."))
    assert (report.encoded, encoded) == (1, ["Other text."])


def test_only_a_new_document_is_encoded(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    assert build(tmp_path / "i", TWO, ONE)[1] == ["Second text."]


def test_a_document_whose_headings_alone_are_new_is_not_encoded(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    headings = (Heading(1, "First", 0),)
    assert build(tmp_path / "i", replace(ONE, headings=headings, sha256="new"))[1] == []
    written = open_index(tmp_path / "i").passages.document("one")
    assert written is not None
    assert (written.headings, written.sha256) == (headings, "new")


def test_when_a_document_was_encoded_is_kept_while_it_stays_the_same(tmp_path: Path) -> None:
    start = time.time()
    build(tmp_path / "i", ONE, TWO)
    before = {facts.source: facts.indexed_at for facts in open_index(tmp_path / "i").passages.facts()}
    build(tmp_path / "i", ONE, document("two", "Other text."))
    after = {facts.source: facts.indexed_at for facts in open_index(tmp_path / "i").passages.facts()}
    assert after["one"] == before["one"]
    assert start <= (before["two"] or 0) < (after["two"] or 0) <= time.time()


def test_a_document_that_vanished_is_removed(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE, TWO)
    report, _ = build(tmp_path / "i", TWO)
    assert (report.removed, open_index(tmp_path / "i").passages.texts()) == (1, ["Second text."])


def test_rebuilding_encodes_everything(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    assert build(tmp_path / "i", ONE, rebuild=True)[1] == ["First text."]


@pytest.mark.parametrize("change", [{"encoder": "other"}, {"chunk_chars": 50}, {"token_vectors": False}])
def test_other_settings_encode_everything(tmp_path: Path, change: dict[str, object]) -> None:
    build(tmp_path / "i", ONE)
    assert build(tmp_path / "i", ONE, settings=replace(SETTINGS, **change))[1] == ["First text."]  # type: ignore[arg-type]


def test_an_encoder_of_the_same_name_and_another_dimension_encodes_everything(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    settings = replace(SETTINGS, dimension=7)
    assert build(tmp_path / "i", ONE, settings=settings, encoder=HashEncoder(dimension=7))[1] == ["First text."]


def test_more_roots_encode_nothing_again(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    assert build(tmp_path / "i", ONE, settings=replace(SETTINGS, roots=("more",)))[1] == []


def test_kept_and_new_documents_have_their_own_vectors_and_tokens(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    build(tmp_path / "i", TWO, ONE)
    index = open_index(tmp_path / "i")
    for row, text in enumerate(["First text.", "Second text."]):
        dense, (tokens,) = HashEncoder().encode_tokens([text])
        assert np.allclose(index.vectors.stored([row]), dense, atol=1e-3)
        assert index.tokens is not None
        assert np.allclose(index.tokens.of(row) / 127, tokens, atol=0.005)


def test_no_documents_leave_the_old_index(tmp_path: Path) -> None:
    build(tmp_path / "i", ONE)
    with pytest.raises(NothingToIndexError):
        build(tmp_path / "i")
    assert open_index(tmp_path / "i").passages.texts() == ["First text."]


def test_a_passage_found_in_a_pdf_names_its_page(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("about cats", "about dogs"))
    build(
        tmp_path / "i", *read_files([tmp_path / "a.pdf"], {}, no_progress), settings=replace(SETTINGS, chunk_chars=15)
    )
    passages = open_index(tmp_path / "i").passages.get([0, 1])
    assert [(passage.text, passage.page) for passage in passages] == [("about cats", 1), ("about dogs", 2)]


def test_every_passage_stands_at_its_start_in_its_document(tmp_path: Path) -> None:
    long = document("long", " ".join(f"Sentence number {i} stands here.\n\n" for i in range(40)))
    build(tmp_path / "i", long, ONE)
    index = open_index(tmp_path / "i")
    for passage in index.passages.get(range(len(index.passages))):
        found = index.passages.document(passage.source)
        assert found is not None
        assert found.text.startswith(passage.text, passage.start)


# Reading files


def test_a_source_is_the_path_below_the_root_s_parent(tmp_path: Path) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "deep" / "a.txt").write_text("x")
    assert [item.source for item in read_files([tmp_path / "notes"], {}, no_progress)] == ["notes/deep/a.txt"]


def test_a_root_within_another_changes_no_source(tmp_path: Path) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "deep" / "a.txt").write_text("x")
    roots = [tmp_path / "notes", tmp_path / "notes" / "deep"]
    assert [item.source for item in read_files(roots, {}, no_progress)] == ["notes/deep/a.txt"]


def test_files_of_the_same_short_name_keep_apart(tmp_path: Path) -> None:
    for parent in ("x", "y"):
        (tmp_path / parent / "notes").mkdir(parents=True)
        (tmp_path / parent / "notes" / "a.txt").write_text(parent)
    documents = read_files([tmp_path / "x" / "notes", tmp_path / "y" / "notes"], {}, no_progress)
    assert [(item.source, item.text) for item in documents] == [
        ("notes/a.txt", "x"),
        ((tmp_path / "y" / "notes" / "a.txt").as_posix(), "y"),
    ]


def test_a_file_keeps_its_source_whether_or_not_another_of_that_name_can_be_read(tmp_path: Path) -> None:
    for parent in ("x", "y"):
        (tmp_path / parent / "notes").mkdir(parents=True)
        (tmp_path / parent / "notes" / "a.txt").write_text(parent)
    roots = [tmp_path / "x" / "notes", tmp_path / "y" / "notes"]
    (tmp_path / "x" / "notes" / "a.txt").write_bytes(b"\0")
    documents = read_files(roots, {}, no_progress)
    assert [item.source for item in documents] == [(tmp_path / "y" / "notes" / "a.txt").as_posix()]


def test_excluded_files_are_not_read_and_known_documents_not_again(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text(name)
    known = document(f"{tmp_path.name}/b.txt", "known")
    excluded = {str(tmp_path / "a.txt")}
    documents = read_files([tmp_path], {}, no_progress, excluded, {known.source: known})
    assert [item.text for item in documents] == ["known", "c.txt"]


def test_unreadable_files_are_listed_with_the_reason_and_the_others_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.txt").write_bytes(b"\0")
    skipped: dict[str, str] = {}
    documents = read_files([tmp_path], skipped, no_progress)
    assert [item.title for item in documents] == ["a.txt"]
    assert skipped == {str(tmp_path / "b.txt"): "empty", str(tmp_path / "c.txt"): "binary, not text"}


@pytest.mark.parametrize("name", [b"new\nline.txt", b"latin-\xe9.txt", b"q'uo\"te?#%.txt", "日本.txt".encode()])
def test_a_file_of_any_name_can_be_indexed(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    Path(folder, name.decode("utf-8", "surrogateescape")).write_text("hello")
    build(tmp_path / "i", *read_files([folder], {}, no_progress))
    assert open_index(tmp_path / "i").passages.texts() == ["hello"]
