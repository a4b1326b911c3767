"""Token recycling: the target's own likeliest tokens, looked up again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from decoding.drafter import DraftRequest, Observation
from decoding.drafters.token_recycling import RANK_PROBS, TokenRecyclingDrafter, static_tree
from decoding.tree import EMPTY, depths, make_tree
from tests.decoding.drafting import started
from tests.decoding.scripted import answered, counting, observed
from tests.decoding.tiny import VOCABULARY


def taught(*rows: tuple[int, list[int]]) -> TokenRecyclingDrafter:
    """A drafter that has seen these tokens followed by these likeliest ones, all in one rejected draft."""
    drafter = TokenRecyclingDrafter()
    drafter.start(DraftRequest((1,)))
    drafter.propose((63,), 0)
    tree = make_tree([token for token, _ in rows], [-1] * len(rows))
    likely = np.array([[60, 61], *(following for _, following in rows)])
    drafter.observe(Observation(tree, (), (60,), (60, *(following[0] for _, following in rows)), likely))
    return drafter


def test_the_static_tree_has_80_nodes_in_six_levels_best_first() -> None:
    tree = static_tree()
    assert len({node[:2] for node in tree}) == len(tree) == 80
    assert np.bincount(depths(make_tree([0] * 80, [parent for parent, _, _ in tree]))).tolist() == [
        0, 8, 21, 25, 19, 6, 1,
    ]  # fmt: skip
    values = [value for _, _, value in tree]
    assert values == sorted(values, reverse=True)
    for parent, rank, value in tree:
        above = 1.0 if parent < 0 else values[parent]
        assert value == above * RANK_PROBS[rank]


def test_a_small_budget_takes_the_best_nodes() -> None:
    # by hand: .5, .5*.5, .18, .5*.5*.5, .1, then .18*.5 and .5*.18
    assert [node[:2] for node in static_tree()[:5]] == [(-1, 0), (0, 0), (-1, 1), (1, 0), (-1, 2)]


def test_the_likeliest_tokens_after_rejected_nodes_are_drafted_too() -> None:
    tree = taught((5, [6, 7]), (6, [8, 9])).propose((5,), 4)
    # 6 (rank 0), 8 below it (rank 0 0), 7 (rank 1); nothing is known of 8, so node (1, 0) is left out
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([6, 8, 7], [-1, 0, -1])
    assert tree.probs.tolist() == [0.5, 0.25, 0.18]


def test_of_a_token_that_stands_twice_the_accepted_node_counts() -> None:
    drafter = TokenRecyclingDrafter()
    drafter.start(DraftRequest((1,)))
    drafter.propose((4,), 8)
    tree = make_tree([5, 9, 5], [-1, -1, 1])
    likely = np.array([[5], [6], [3], [7]])
    drafter.observe(Observation(tree, (0,), (5, 6), (5, 6, 3, 7), likely))
    assert drafter.propose((5,), 1).tokens.tolist() == [6]
    assert drafter.propose((4,), 1).tokens.tolist() == [5]


def test_a_token_of_which_nothing_is_known_gets_no_draft() -> None:
    assert len(taught((5, [6, 7])).propose((8,), 80)) == 0


def test_the_matrix_is_kept_over_answers_until_reset() -> None:
    drafter = taught((5, [6, 7]))
    drafter.start(DraftRequest((2,)))
    assert len(drafter.propose((5,), 8)) == 2
    drafter.reset()
    drafter.start(DraftRequest((2,)))
    assert len(drafter.propose((5,), 8)) == 0


def test_an_observation_without_likely_tokens_teaches_nothing() -> None:
    drafter = started(TokenRecyclingDrafter(), [], (1,))
    drafter.propose((5,), 8)
    drafter.observe(replace(observed(counting, (5,), make_tree([6], [-1]), 8), likely=None))
    drafter.observe(Observation(EMPTY, (), (7,)))
    assert [len(drafter.propose((token,), 8)) for token in (5, 6, 7)] == [0, 0, 0]


def test_the_root_is_the_last_token_emitted_though_no_draft_was_asked_for_in_between() -> None:
    drafter = started(TokenRecyclingDrafter(), [], (1,))
    drafter.propose((5,), 8)
    drafter.observe(observed(counting, (5,), EMPTY, 8))
    drafter.observe(observed(counting, (5, 6), EMPTY, 8))  # the loop had no room for a draft
    assert drafter.propose((5, 6, 7, 6), 1).tokens.tolist() == [7]


def test_a_text_said_once_is_drafted_when_it_comes_again() -> None:
    drafter = TokenRecyclingDrafter()
    first = answered(drafter, (0,), VOCABULARY, 80)
    again = answered(drafter, (0,), 8, 80)
    assert [len(shown.path) for shown in first[:1]] == [0]
    assert {len(shown.path) for shown in again} == {6}  # six levels of rank 0
