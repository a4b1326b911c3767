from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from indexes.neighbours import Vectors
from indexes.quantisation import quantised
from indexes.vectors import SegmentVectors, VectorIndex
from tests.indexes.small import checked, live


def unit(vectors: np.ndarray) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def clustered() -> Vectors:
    """12,000 vectors around 300 centres."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((300, 32))
    return unit(centres[random.integers(300, size=12_000)] + 0.5 * random.standard_normal((12_000, 32)))


def opened(folder: Path, vectors: Vectors, deleted: Sequence[tuple[int, int]] = ()) -> VectorIndex:
    """An index of one segment."""
    count, dimension = vectors.shape
    rounded = vectors.astype(np.float16)
    made = quantised(lambda rows: rounded[rows].astype(np.float32), count, dimension)
    stored = checked(folder / "v", rounded.tobytes())
    return VectorIndex([(SegmentVectors(stored, dimension, made), live(count, deleted))])


@pytest.fixture(scope="module")
def large(clustered: Vectors, tmp_path_factory: pytest.TempPathFactory) -> VectorIndex:
    return opened(tmp_path_factory.mktemp("vectors"), clustered)


def test_a_quantised_index_finds_nearly_all_of_the_true_ten_best_after_rescoring(
    large: VectorIndex, clustered: Vectors
) -> None:
    random = np.random.default_rng(1)
    queries = unit(clustered[random.integers(len(clustered), size=100)] + 0.05 * random.standard_normal((100, 32)))
    true = np.argsort(-(queries @ clustered.T), axis=1)[:, :10]
    found = [len(set(large.search(query, 10)) & set(rows.tolist())) for query, rows in zip(queries, true, strict=True)]
    assert sum(found) / 1000 > 0.9


def test_a_quantised_index_gives_rescored_rows_best_first(large: VectorIndex, clustered: Vectors) -> None:
    rows = large.search(clustered[5], 20)
    scores = clustered[rows].astype(np.float16).astype(np.float32) @ clustered[5]
    assert rows[0] == 5
    assert np.all(np.diff(scores) <= 0)


@pytest.mark.parametrize("dimension", [1, 7, 33])
def test_a_flat_index_takes_odd_dimensions_and_is_exact(tmp_path: Path, dimension: int) -> None:
    vectors = unit(np.random.default_rng(0).standard_normal((50, dimension)))
    rounded = vectors.astype(np.float16).astype(np.float32)
    found = opened(tmp_path, vectors).search(vectors[3], 50)
    assert rounded[found] @ vectors[3] == pytest.approx(np.sort(rounded @ vectors[3])[::-1])


HAND = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)  # with (0.8, 0.6): 0.8, 0.96, 0.6
QUERY = np.array([0.8, 0.6], np.float32)


def test_rows_come_by_inner_product_worked_by_hand(tmp_path: Path) -> None:
    assert opened(tmp_path, HAND).search(QUERY, 5) == [1, 0, 2]


def test_deleted_rows_are_left_out_and_others_take_their_place(tmp_path: Path) -> None:
    assert opened(tmp_path, HAND, [(1, 2)]).search(QUERY, 2) == [0, 2]


def test_rows_of_several_segments_come_by_inner_product(tmp_path: Path) -> None:
    first = SegmentVectors(checked(tmp_path / "1", HAND[:1].astype(np.float16).tobytes()), 2)
    second = SegmentVectors(checked(tmp_path / "2", HAND[1:].astype(np.float16).tobytes()), 2)
    index = VectorIndex([(first, live(1)), (second, live(2, (), 1))])
    assert index.search(QUERY, 2) == [1, 0]
    assert index.stored([2, 0]).tolist() == [[0, 1], [1, 0]]


def test_none_wanted_gives_none(tmp_path: Path) -> None:
    assert opened(tmp_path, HAND).search(QUERY, 0) == []


def test_an_index_of_nothing_finds_nothing() -> None:
    assert VectorIndex([]).search(QUERY, 3) == []
