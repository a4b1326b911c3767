from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import pytest

from indexes.neighbours import Vectors
from indexes.quantisation import RECALL, Layout, TrainedIndex, choose_layout, quantised

COUNT, DIMENSION = 12_000, 32


@pytest.mark.parametrize(
    ("count", "dimension", "layout"),
    [
        (1, 384, "Flat"),
        (9_983, 384, "Flat"),
        (9_984, 384, "IVF256,PQ64"),
        (19_967, 384, "IVF256,PQ64"),
        (19_968, 384, "IVF512,PQ64"),
        (159_743, 1024, "IVF2048,PQ64"),
        (159_744, 1024, "IVF4096,PQ64"),
        (10_000_000, 1024, "IVF4096,PQ64"),
        (159_744, 48, "IVF4096,PQ48"),
        (159_744, 33, "Flat"),
        (159_744, 50, "Flat"),
    ],
)
def test_the_layout_is_the_largest_that_so_many_vectors_can_train(count: int, dimension: int, layout: str) -> None:
    assert str(choose_layout(count, dimension)) == layout


def test_a_layout_without_clusters_is_flat() -> None:
    assert Layout() == Layout(0, 0)


def made(centres: int, spread: float) -> tuple[Vectors, TrainedIndex, Any]:
    """Vectors around centres, and their index, opened by FAISS."""
    draw = np.random.default_rng(0)
    middles = draw.standard_normal((centres, DIMENSION))
    every = middles[draw.integers(centres, size=COUNT)] + spread * draw.standard_normal((COUNT, DIMENSION))
    vectors = np.asarray(every / np.linalg.norm(every, axis=1, keepdims=True), np.float32)
    index = quantised(lambda rows: vectors[rows], *vectors.shape)
    assert str(index.layout) == "IVF256,PQ32"
    return vectors, index, faiss.deserialize_index(np.frombuffer(index.index, np.uint8))


def test_vectors_in_tight_clusters_are_searched_with_the_papers_sixteen_probes() -> None:
    _, index, opened = made(100, 0.1)
    assert (opened.nprobe, index.rescored) == (16, 4)


def test_vectors_without_clusters_are_searched_as_far_as_it_takes_to_find_their_neighbours() -> None:
    vectors, index, opened = made(1, 1.0)
    asked = vectors[:50] + np.float32(0.01)
    true = np.argsort(-(asked @ vectors.T), axis=1)[:, :100]
    found = opened.search(asked, 100 * index.rescored)[1]
    assert opened.nprobe > 16
    assert np.mean([np.isin(rows, near).mean() for rows, near in zip(true, found, strict=True)]) > RECALL - 0.03


def test_no_more_is_scanned_than_a_question_may_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.quantisation.MOST_SCANNED", 40 * COUNT / 256)
    _, index, opened = made(1, 1.0)
    assert (opened.nprobe, index.rescored) == (32, 20)
