from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.errors import SettingError
from indexes.passages import Chunk, Document, Passage, PassageStore, write_passages
from indexes.store import EncodedDocument, check_name, names, open_index, write_index
from indexes.token_vectors import TokenVectors, TokenVectorsWriter, quantise
from tests.indexes.small import SETTINGS, build, document

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def store(tmp_path: Path, *documents: tuple[Document, list[Chunk]]) -> PassageStore:
    write_passages(tmp_path / "p", documents)
    return PassageStore(tmp_path / "p")


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


def test_token_vectors_come_back_by_row(tmp_path: Path) -> None:
    writer = TokenVectorsWriter(tmp_path / "t.i8", 2)
    writer.append(quantise(np.array([[1, 0], [0, -1]], np.float32)))
    writer.append(quantise(np.array([[0.6, 0.8]], np.float32)))
    writer.close()
    tokens = TokenVectors(tmp_path / "t.i8", 2)
    # 127 x 0.6 = 76.2, 127 x 0.8 = 101.6
    assert (tokens.of(0).tolist(), tokens.of(1).tolist()) == ([[127, 0], [0, -127]], [[76, 102]])


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
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "a b", "x" * 65, "ä", "a\n"])
def test_a_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot be the name of an index"):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "python-docs", "v1.2_x", "x" * 64])
def test_a_plain_name_is_taken(name: str) -> None:
    assert check_name(name) == name
