"""What drafts are worth, from counts; worked by hand."""

from __future__ import annotations

import math

import pytest

from decoding.acceptance import Acceptance
from decoding.tree import EMPTY, chain, make_tree


def test_a_calibrated_drafter_is_believed_before_anything_is_counted() -> None:
    tree = make_tree([1, 2, 3], [-1, 0, -1], [0.6, 0.3, 0.2])
    assert Acceptance(calibrated=True).survival(tree) == pytest.approx([0.6, 0.3, 0.2])


def test_other_drafters_are_doubted_the_less_the_longer_a_run_they_have_got_right() -> None:
    survival = Acceptance().survival(chain([1, 2, 3]))
    assert survival == pytest.approx([0.2, 0.2 * 0.5, 0.2 * 0.5 * 0.7])


def test_hits_and_misses_move_the_chance_of_what_was_stated_alike() -> None:
    acceptance = Acceptance(calibrated=True)
    for _ in range(30):
        acceptance.observe(make_tree([1], [-1], [0.4]), [9])
    acceptance.start()
    assert acceptance.chance(0.4, 0) == pytest.approx(10 * 0.4 / (30 + 10))  # ten trials' worth of belief
    assert acceptance.chance(0.9, 0) == pytest.approx(0.9)


def test_an_answer_that_does_not_copy_lowers_all_chances_until_the_next_one() -> None:
    acceptance = Acceptance(calibrated=True)
    for _ in range(5):
        acceptance.observe(make_tree([1], [-1], [0.4]), [9])
    assert acceptance.chance(0.9, 0) < 0.87
    acceptance.start()
    assert acceptance.chance(0.9, 0) == pytest.approx(0.9)


def test_a_run_lengthens_with_every_token_that_was_drafted_and_ends_with_one_that_was_not() -> None:
    acceptance = Acceptance()
    acceptance.observe(chain([1, 2, 3]), [1, 2, 3, 7])
    assert acceptance.run == 3  # nothing was drafted where the 7 came
    acceptance.observe(chain([1, 2]), [1, 9])
    assert acceptance.run == 0
    acceptance.observe(chain([1, 2]), [1])
    assert acceptance.run == 1
    acceptance.observe(EMPTY, [5])
    assert acceptance.run == 0


def test_of_twins_only_the_first_is_right() -> None:
    acceptance = Acceptance(calibrated=True)
    for _ in range(10):
        acceptance.start()
        acceptance.observe(make_tree([1, 1], [-1, -1], [0.4, 0.4]), [1])
    acceptance.start()
    assert acceptance.chance(0.4, 0) == pytest.approx((10 + 4) / (20 + 10))


def test_old_counts_give_way_to_new_ones() -> None:
    acceptance = Acceptance(calibrated=True)
    for tokens, rounds in (([1], 2000), ([9], 1000)):
        for _ in range(rounds):
            acceptance.start()
            acceptance.observe(make_tree([1], [-1], [0.4]), tokens)
    acceptance.start()
    assert acceptance.chance(0.4, 0) < 0.2


@pytest.mark.parametrize("stated", [math.nan, math.inf, -1.0, 0.0])
def test_what_is_no_probability_is_taken_for_one(stated: float) -> None:
    acceptance = Acceptance()
    tree = make_tree([1, 2], [-1, 0], [stated, 0.5])
    acceptance.observe(tree, [1, 2])
    assert all(0 <= chance <= 1 for chance in acceptance.survival(tree))


def test_after_reset_nothing_is_known() -> None:
    acceptance = Acceptance()
    for _ in range(20):
        acceptance.observe(chain([1]), [1])
    acceptance.reset()
    assert acceptance.survival(chain([1])) == Acceptance().survival(chain([1]))
