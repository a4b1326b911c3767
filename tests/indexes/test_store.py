from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.errors import DamagedIndexError, SettingError
from indexes.passage_store import PassageStore
from indexes.passages import Chunk, Document, DocumentFacts, Heading, Passage
from indexes.segments import EncodedDocument
from indexes.store import (
    check_name,
    known_excluded,
    known_roots,
    names,
    open_index,
    open_passages,
    write_index,
)
from indexes.token_vectors import TokenFile, TokenVectors, quantise
from tests.indexes.small import SETTINGS, build, checked, document, encoded, passage_store

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def store(tmp_path: Path, *documents: tuple[Document, list[Chunk]]) -> PassageStore:
    return passage_store(tmp_path / "i", *documents)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    written = [(document(f"s{i}", text), [Chunk(0, text)]) for i, text in enumerate(texts)]
    read = list(store(tmp_path_factory.mktemp("s"), *written).documents())
    assert read == [(item, [(row, chunks[0])]) for row, (item, chunks) in enumerate(written)]


def test_passages_come_in_the_order_asked_for(tmp_path: Path) -> None:
    passages = store(tmp_path, (document("a", "one two"), [Chunk(0, "one"), Chunk(4, "two")])).get([1, 0])
    assert passages == [Passage(1, "a#1", "a", "a", 4, "two"), Passage(0, "a#0", "a", "a", 0, "one")]


def test_a_row_that_is_not_there_is_a_key_error(tmp_path: Path) -> None:
    passages = store(tmp_path, (document("a", "one"), [Chunk(0, "one")]))
    with pytest.raises(KeyError):
        passages.get([1])


def test_the_page_of_a_passage_is_the_one_that_it_starts_on(tmp_path: Path) -> None:
    paged = Document("a", "a", "one\n\ntwo\n\nsix", "0", (0, 5, 10))
    chunks = [Chunk(0, "one"), Chunk(4, "\ntwo"), Chunk(5, "two"), Chunk(10, "six")]
    assert [passage.page for passage in store(tmp_path, (paged, chunks)).get(range(4))] == [1, 1, 2, 3]


@pytest.mark.parametrize(("start", "page"), [(0, 1), (4, 1), (5, 2), (9, 2), (10, 3), (99, 3)])
def test_a_document_tells_the_page_of_a_character(start: int, page: int) -> None:
    assert Document("a", "a", "", "0", (0, 5, 10)).page(start) == page


def test_a_document_without_pages_has_no_page() -> None:
    assert Document("a", "a", "", "0").page(0) is None


def test_a_document_is_found_by_its_source(tmp_path: Path) -> None:
    written = Document("a", "Title", "one", "0", (0,))
    assert store(tmp_path, (written, [Chunk(0, "one")])).document("a") == written


def test_headings_come_back_in_order(tmp_path: Path) -> None:
    headings = (Heading(1, "one", 0), Heading(3, "two", 4))
    written = Document("a", "Title", "one two", "0", (), headings)
    read = store(tmp_path, (written, [Chunk(0, "one two")]), (document("b", "x"), [Chunk(0, "x")]))
    assert [read.document("a"), next(item for item, _ in read.documents())] == [written, written]
    assert (read.headings("a"), read.headings("b"), read.headings("c")) == (headings, (), ())


def test_a_list_of_documents_tells_their_size_and_when_they_were_indexed(tmp_path: Path) -> None:
    paged = Document("b", "B", "one\n\ntwo 😀", "0", (0, 5))
    chunks = [Chunk(0, "one"), Chunk(5, "two 😀")]
    written = [encoded(paged, chunks, 1.5), encoded(document("a", "x"), [])]
    write_index(tmp_path / "i", SETTINGS, written)
    assert open_passages(tmp_path / "i").facts() == [
        DocumentFacts("a", "a", 1, None, 0, None),
        DocumentFacts("b", "B", 10, 2, 2, 1.5),
    ]


def test_passages_are_opened_without_reading_the_vectors(tmp_path: Path) -> None:
    path = build(tmp_path / "i") / "segments" / "000001" / "embeddings.f16"
    path.write_bytes(bytes(path.stat().st_size))
    assert open_passages(tmp_path / "i").texts() == ["one"]


@pytest.mark.parametrize("size", [0, 1])
def test_passages_that_were_damaged_are_not_opened(tmp_path: Path, size: int) -> None:
    path = build(tmp_path / "i") / "segments" / "000001" / "texts.utf8"
    path.write_bytes(path.read_bytes()[size:] + b"x")
    with pytest.raises(DamagedIndexError, match=r"texts\.utf8 is damaged"):
        open_passages(tmp_path / "i").texts()


def test_an_index_remembers_what_is_excluded_even_when_half_of_it_is_damaged(tmp_path: Path) -> None:
    settings = replace(SETTINGS, roots=("r",), excluded=("x\udcff",))
    write_index(tmp_path / "i", settings, list(open_index(build(tmp_path / "o")).encoded_documents().values()))
    assert open_index(tmp_path / "i").settings == settings
    for damaged in ("generations/000001.json", "generations/000001.roots.json"):
        whole = (tmp_path / "i" / damaged).read_bytes()
        (tmp_path / "i" / damaged).write_bytes(b"torn")
        assert (known_excluded(tmp_path / "i"), known_roots(tmp_path / "i")) == (["x\udcff"], ["r"])
        (tmp_path / "i" / damaged).write_bytes(whole)


def test_token_vectors_come_back_by_row(tmp_path: Path) -> None:
    vectors = quantise(np.array([[1, 0], [0, -1], [0.6, 0.8]], np.float32))
    first = TokenFile(checked(tmp_path / "1", vectors.tobytes()), np.array([0, 2, 3]), 2)
    second = TokenFile(checked(tmp_path / "2", vectors[2:].tobytes()), np.array([0, 1]), 2)
    tokens = TokenVectors([(first, 0), (second, 2)])
    # 127 x 0.6 = 76.2, 127 x 0.8 = 101.6
    assert [tokens.of(row).tolist() for row in range(3)] == [[[127, 0], [0, -127]], [[76, 102]], [[76, 102]]]


def test_an_index_gives_back_everything_that_was_encoded(tmp_path: Path) -> None:
    vectors = np.eye(2, 33, dtype=np.float32)
    tokens = [quantise(vectors), quantise(vectors[:1])]
    written = EncodedDocument(document("a", "one two"), [Chunk(0, "one"), Chunk(4, "two")], vectors, tokens)
    write_index(tmp_path / "i", SETTINGS, [written])
    read = open_index(tmp_path / "i").encoded_documents()["a"]
    assert (read.document, list(read.chunks)) == (written.document, list(written.chunks))
    assert np.array_equal(read.vectors, vectors)
    assert all(np.array_equal(a, b) for a, b in zip(read.tokens, tokens, strict=True))


def test_an_index_remembers_its_settings(tmp_path: Path) -> None:
    assert open_index(build(tmp_path / "i")).settings == SETTINGS


def test_names_lists_the_indexes_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        build(tmp_path / name)
    (tmp_path / "no-index").mkdir()
    build(tmp_path / ".b.removed")  # a kill left it there
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "a b", "x" * 65, "ä", "a\n"])
def test_a_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot be the name of an index"):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "python-docs", "v1.2_x", "x" * 64])
def test_a_plain_name_is_taken(name: str) -> None:
    assert check_name(name) == name
