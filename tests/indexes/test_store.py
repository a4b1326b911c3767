from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.errors import DamagedIndexError, SettingError
from indexes.files import MANIFEST, current_generation
from indexes.passages import Chunk, Document, DocumentFacts, Heading, Passage, PassageStore, write_passages
from indexes.store import (
    EncodedDocument,
    check_name,
    known_excluded,
    known_roots,
    names,
    open_index,
    open_passages,
    write_index,
)
from indexes.token_vectors import TokenVectors, TokenVectorsWriter, quantise
from tests.indexes.small import SETTINGS, build, document
from tests.indexes.stores import forge_manifest

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


def test_headings_come_back_in_order(tmp_path: Path) -> None:
    headings = (Heading(1, "one", 0), Heading(3, "two", 4))
    written = Document("a", "Title", "one two", "0", (), headings)
    read = store(tmp_path, (written, [Chunk(0, "one two")]), (document("b", "x"), [Chunk(0, "x")]))
    assert read.has_headings
    assert [read.document("a"), next(item for item, _ in read.documents())] == [written, written]
    assert (read.headings("a"), read.headings("b"), read.headings("c")) == (headings, (), ())


def test_a_file_from_before_there_were_headings_is_read_as_having_none(tmp_path: Path) -> None:
    write_passages(tmp_path / "p", [(Document("a", "a", "one", "0", (), (Heading(1, "one", 0),)), [Chunk(0, "one")])])
    with sqlite3.connect(tmp_path / "p") as database:
        database.executescript("DROP TABLE headings; DROP TABLE times;")
    read = PassageStore(tmp_path / "p")
    assert (read.has_headings, read.document("a")) == (False, Document("a", "a", "one", "0"))
    assert read.facts() == [DocumentFacts("a", "a", 3, None, 1, None)]


def test_a_list_of_documents_tells_their_size_and_when_they_were_indexed(tmp_path: Path) -> None:
    paged = Document("b", "B", "one\n\ntwo 😀", "0", (0, 5))
    chunks = [Chunk(0, "one"), Chunk(5, "two 😀")]
    write_passages(tmp_path / "p", [(paged, chunks), (document("a", "x"), [])], {"b": 1.5})
    assert PassageStore(tmp_path / "p").facts() == [
        DocumentFacts("a", "a", 1, None, 0, None),
        DocumentFacts("b", "B", 10, 2, 2, 1.5),
    ]


def test_passages_are_opened_without_reading_the_vectors(tmp_path: Path) -> None:
    generation = current_generation(build(tmp_path / "i"))[0]
    (generation / "vectors.faiss").write_bytes(bytes((generation / "vectors.faiss").stat().st_size))
    assert len(open_passages(tmp_path / "i")) == len(open_passages(tmp_path / "i").texts()) > 0


def test_an_index_from_before_there_were_sizes_and_exclusions_is_opened(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    generation = current_generation(folder)[0]
    (generation / "excluded.json").unlink()
    manifest = json.loads((generation / MANIFEST).read_bytes())
    del manifest["sizes"], manifest["excluded"], manifest["files"]["excluded.json"]
    forge_manifest(folder, json.dumps(manifest).encode())
    assert open_passages(folder).texts() == ["one"]
    assert (open_index(folder).settings, known_excluded(folder)) == (SETTINGS, [])


@pytest.mark.parametrize("size", [0, 1])
def test_passages_that_were_damaged_are_not_opened(tmp_path: Path, size: int) -> None:
    path = current_generation(build(tmp_path / "i"))[0] / "passages.sqlite"
    path.write_bytes(path.read_bytes()[size:] + b"x")
    with pytest.raises(DamagedIndexError, match=r"passages\.sqlite is damaged"):
        open_passages(tmp_path / "i")


def test_an_index_remembers_what_is_excluded_even_when_half_of_it_is_damaged(tmp_path: Path) -> None:
    settings = replace(SETTINGS, roots=("r",), excluded=("x\udcff",))
    write_index(tmp_path / "i", settings, list(open_index(build(tmp_path / "o")).encoded_documents().values()))
    assert open_index(tmp_path / "i").settings == settings
    generation = current_generation(tmp_path / "i")[0]
    for damaged in ("excluded.json", "manifest.json"):
        whole = (generation / damaged).read_bytes()
        (generation / damaged).write_bytes(b"torn")
        assert (known_excluded(tmp_path / "i"), known_roots(tmp_path / "i")) == (["x\udcff"], ["r"])
        (generation / damaged).write_bytes(whole)


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
    build(tmp_path / ".b.removed")  # a kill left it there
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "a b", "x" * 65, "ä", "a\n"])
def test_a_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot be the name of an index"):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "python-docs", "v1.2_x", "x" * 64])
def test_a_plain_name_is_taken(name: str) -> None:
    assert check_name(name) == name
