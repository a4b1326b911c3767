from __future__ import annotations

import pytest

from retrieval.fusion import fuse


def test_scores_are_sums_of_one_over_sixty_plus_rank() -> None:
    # 7: 1/61 + 1/62, 9: 1/62 + 1/61, 5: 1/63
    fused = dict(fuse([[7, 9, 5], [9, 7]], 10))
    assert fused == pytest.approx({7: 0.0325224748, 9: 0.0325224748, 5: 0.0158730159})


def test_ties_go_to_the_item_that_an_earlier_ranking_holds_first() -> None:
    assert [item for item, _ in fuse([[7, 9], [9, 7]], 10)] == [7, 9]


def test_an_item_in_both_rankings_beats_the_first_of_one() -> None:
    # 3: 1/62 + 1/62 = 0.0323, 1 and 2: 1/61 = 0.0164
    assert [item for item, _ in fuse([[1, 3], [2, 3]], 10)] == [3, 1, 2]


def test_top_k_cuts() -> None:
    assert [item for item, _ in fuse([[1, 2, 3]], 2)] == [1, 2]


def test_no_rankings_fuse_to_nothing() -> None:
    assert fuse([[], []], 5) == []
