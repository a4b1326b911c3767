"""Adding, replacing, deleting and merging: whatever the way, the index is the one that a single build would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexes.maintenance
from indexes.errors import DamagedIndexError, IndexStoreError, SettingError
from indexes.generations import read_current
from indexes.maintenance import compact, describe, due, merge_due, verify
from indexes.passages import Chunk
from indexes.segments import EncodedDocument, SegmentFacts
from indexes.store import change_index, open_index, write_index
from retrieval.indexing import add_documents
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, build, document, encoded, everything, no_progress, one_chunk

WORDS = st.sampled_from(["one", "two", "number", "three", "stands", "text", "lamp", "Über", "5", "the"])
TEXTS = st.lists(st.lists(WORDS, max_size=4).map(" ".join), max_size=3)
STEPS = st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), TEXTS)), max_size=12)


def item(source: str, texts: list[str]) -> EncodedDocument:
    """A document with a passage per text."""
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
    return encoded(
        document(source, "\n".join(texts)), [Chunk(int(at), text) for at, text in zip(starts, texts, strict=False)]
    )


def change(folder: Path, *added: EncodedDocument, deleted: tuple[str, ...] = ()) -> None:
    change_index(open_index(folder), SETTINGS, added, deleted)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, compacted=st.booleans())
def test_however_documents_came_and_went_the_index_finds_what_one_build_of_them_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[str] | None]], compacted: bool
) -> None:
    folder = tmp_path_factory.mktemp("c")
    write_index(folder / "i", SETTINGS, [])
    left: dict[str, EncodedDocument] = {}
    for source, texts in steps:
        left.pop(source, None)
        if texts is None:
            change(folder / "i", deleted=(source,))
        else:
            left[source] = item(source, texts)
            change(folder / "i", left[source])
    if compacted:
        compact(folder / "i")
    write_index(folder / "o", SETTINGS, left.values())
    assert everything(open_index(folder / "i")) == everything(open_index(folder / "o"))


def test_a_compacted_index_has_one_segment_and_no_unused_rows(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    change(folder, one_chunk("b", "two"), one_chunk("c", "three"))
    change(folder, deleted=("a", "b"))
    assert open_index(folder).passages.rows().tolist() == [1]  # a's segment went whole; b's row waits
    compact(folder)
    assert (len(read_current(folder).segments), open_index(folder).passages.rows().tolist()) == (1, [0])


def test_adding_reads_and_writes_no_other_segment(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    before = {path: path.stat() for path in (folder / "segments").rglob("*") if path.is_file()}
    change(folder, one_chunk("b", "two"))
    assert {path: path.stat().st_mtime_ns for path in before} == {
        path: stat.st_mtime_ns for path, stat in before.items()
    }


def test_deleting_writes_no_segment(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    change(folder, one_chunk("b", "two"), one_chunk("c", "three"))
    change(folder, deleted=("b",))
    assert sorted(path.name for path in (folder / "segments").iterdir()) == ["000001", "000002"]
    assert open_index(folder).passages.texts() == ["one", "three"]


def test_a_deleted_row_is_a_key_error_and_others_keep_theirs(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    change(folder, one_chunk("b", "two"), one_chunk("c", "three"))
    change(folder, deleted=("b",))
    passages = open_index(folder).passages
    assert (len(passages), passages.get([2])[0].text, passages.rows().tolist()) == (2, "three", [0, 2])
    with pytest.raises(KeyError):
        passages.get([1])


def test_an_index_opened_before_it_was_changed_still_answers(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    index = open_index(folder)
    before = everything(index)
    change(folder, one_chunk("a", "two"))
    assert not (folder / "segments" / "000001").exists()
    assert everything(index) == before


def test_segments_that_are_open_stay_open(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    first = open_index(folder)
    change(folder, one_chunk("b", "two"), one_chunk("c", "three"))
    change(folder, deleted=("b",))
    second = open_index(folder, first)
    assert second.parts[0][0] is first.parts[0][0]
    assert everything(second) == everything(open_index(folder))


def test_an_index_that_was_changed_meanwhile_is_not_changed_by_what_was_opened_before(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    before = open_index(folder)
    change(folder, one_chunk("b", "two"))
    with pytest.raises(IndexStoreError, match="was changed by somebody else meanwhile"):
        change_index(before, SETTINGS, deleted=["a"])
    assert len(open_index(folder).passages) == 2


@pytest.mark.parametrize(("name", "value"), [("encoder", "other"), ("dimension", 7), ("chunk_chars", 9)])
def test_documents_of_another_encoder_are_not_added(tmp_path: Path, name: str, value: object) -> None:
    folder = build(tmp_path / "i")
    settings = replace(SETTINGS, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=f"{name}={value!r}"):
        add_documents(folder, settings, [document("b", "two")], HashEncoder(), no_progress)


def test_vectors_of_another_dimension_are_refused(tmp_path: Path) -> None:
    wrong = replace(one_chunk("b", "two"), vectors=np.zeros((1, 7), np.float32))
    with pytest.raises(SettingError, match=r"the document 'b' has 1 passages, vectors \(1, 7\)"):
        change(build(tmp_path / "i"), wrong)
    assert verify(tmp_path / "i").files == 6


def test_a_source_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="the document 'b' is given twice"):
        change(build(tmp_path / "i"), one_chunk("b", "two"), one_chunk("b", "three"))


def test_a_passage_that_is_not_in_its_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="a passage of 'b' does not stand at its start 1"):
        change(build(tmp_path / "i"), encoded(document("b", "two"), [Chunk(1, "two")]))


def test_adding_some_leaves_the_others_and_encodes_nothing_that_is_there(tmp_path: Path) -> None:
    folder, encoder = build(tmp_path / "i"), HashEncoder()
    report = add_documents(folder, SETTINGS, [document("a", "one"), document("b", "two")], encoder, no_progress)
    assert (encoder.encoded, report.encoded, report.documents) == (["two"], 1, 2)


# Merging


def facts(name: str, passages: int, deleted: int = 0) -> SegmentFacts:
    return SegmentFacts(name, passages, passages, "Flat", {}, ((0, deleted),) if deleted else (), deleted)


def names(chosen: list[SegmentFacts]) -> list[str]:
    return [segment.name for segment in chosen]


def test_more_than_eight_segments_of_a_size_are_merged_and_others_stay() -> None:
    small = [facts(str(number), 1 + number % 7) for number in range(9)]
    large = [facts("large", 10_000)]
    assert names(due([*large, *small])) == names(small)
    assert due([*large, *small[1:]]) == []


def test_a_segment_with_more_than_a_third_deleted_is_merged_by_itself() -> None:
    assert due([facts("a", 3, 1), facts("b", 5)]) == []
    assert names(due([facts("a", 5, 2), facts("b", 5)])) == ["a"]


def test_what_would_take_minutes_is_left_to_those_who_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes.maintenance, "AUTOMATIC", 40)
    assert due([facts("a", 100, 50), *(facts(str(number), 5) for number in range(9))]) == []
    assert len(due([facts("a", 60, 30), *(facts(str(number), 4) for number in range(9))])) == 1


def test_many_small_additions_leave_few_segments(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    for number in range(20):
        add_documents(folder, SETTINGS, [document(f"{number}", f"text {number}")], HashEncoder(), no_progress)
    assert [segment["passages"] for segment in describe(folder)["segments"]] == [9, 9, 1, 1, 1]
    assert open_index(folder).passages.texts() == ["one", *(f"text {number}" for number in range(20))]


def test_what_somebody_else_adds_before_a_merge_begins_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build(tmp_path / "i")
    for number in range(8):
        change(folder, one_chunk(str(number), f"text {number}"))

    def due_and_meanwhile(segments: Sequence[SegmentFacts]) -> list[SegmentFacts]:
        monkeypatch.undo()
        change(folder, one_chunk("late", "text late"))
        return due(segments)

    monkeypatch.setattr(indexes.maintenance, "due", due_and_meanwhile)
    assert merge_due(folder).documents == 10
    assert open_index(folder).passages.document("late") is not None


def test_damage_in_what_would_be_merged_leaves_the_change_that_stands(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    for number in range(8):
        change(folder, one_chunk(str(number), f"text {number}"))
    (folder / "segments" / "000001" / "texts.utf8").write_bytes(b"two")
    assert merge_due(folder).documents == 9
    with pytest.raises(DamagedIndexError, match=r"segments/000001/texts.utf8 is damaged"):
        compact(folder)
    assert len(read_current(folder).segments) == 9


def test_verifying_names_every_damaged_file(tmp_path: Path) -> None:
    folder = build(tmp_path / "i") / "segments" / "000001"
    for name in ("texts.utf8", "embeddings.f16"):
        (folder / name).write_bytes(bytes((folder / name).stat().st_size))
    with pytest.raises(DamagedIndexError, match=r"texts.utf8 is damaged.*; .*embeddings.f16 is damaged"):
        verify(tmp_path / "i")


# A segment that is quantised

UNIT = np.random.default_rng(0).standard_normal((10_510, 8)).astype(np.float32)
UNIT /= np.linalg.norm(UNIT, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,500 passages of 8 dimensions, 250 of them deleted, and ten in another segment."""
    folder, made = tmp_path_factory.mktemp("large") / "i", replace(SETTINGS, dimension=8, token_vectors=False)
    items = [
        EncodedDocument(document(str(row), f"text {row}"), [Chunk(0, f"text {row}")], UNIT[row : row + 1])
        for row in range(10_510)
    ]
    write_index(folder, made, items[:10_500])
    change_index(open_index(folder), made, items[10_500:], [str(row) for row in range(250)])
    return folder


def test_a_quantised_segment_and_a_flat_one_are_searched_together(large: Path) -> None:
    index = open_index(large)
    assert index.layout == "IVF256,PQ8, Flat"
    assert [index.vectors.search(UNIT[row], 3)[0] for row in (300, 10_505)] == [300, 10_505]


def test_what_was_deleted_from_a_quantised_segment_is_not_found(large: Path) -> None:
    index = open_index(large)
    found = {row for asked in range(250) for row in index.vectors.search(UNIT[asked], 20)}
    assert min(found) >= 250


def test_a_compacted_quantised_index_is_the_one_that_is_built_at_once(large: Path, tmp_path: Path) -> None:
    index = open_index(large)
    write_index(tmp_path / "o", index.settings, index.encoded_documents().values())
    compact(large)
    once, merged = open_index(tmp_path / "o"), open_index(large)
    vectors = "segments/000001/vectors.faiss", f"segments/{merged.generation.segments[0].name}/vectors.faiss"
    assert (tmp_path / "o" / vectors[0]).read_bytes() == (large / vectors[1]).read_bytes()
    assert [once.vectors.search(UNIT[row], 9) for row in range(9)] == [
        merged.vectors.search(UNIT[row], 9) for row in range(9)
    ]


def test_damage_in_a_quantised_index_is_refused_at_opening(large: Path) -> None:
    path = next((large / "segments").rglob("vectors.faiss"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedIndexError, match=r"vectors\.faiss is damaged"):
        open_index(large)
