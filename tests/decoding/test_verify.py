"""Verification: the walk along the target's choices."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from decoding.tree import EMPTY, DraftTree, chain, make_tree
from decoding.verify import Verified, verify
from tests.decoding.hostile import trees


def test_the_empty_tree_emits_the_targets_choice() -> None:
    assert verify(EMPTY, [7]) == Verified((), (7,))


def test_a_chain_is_accepted_as_far_as_the_target_agrees_and_a_bonus_token_follows() -> None:
    assert verify(chain([4, 5, 6]), [4, 5, 9, 1]) == Verified((0, 1), (4, 5, 9))


def test_a_chain_that_is_right_throughout_is_accepted_with_a_bonus_token() -> None:
    assert verify(chain([4, 5]), [4, 5, 8]) == Verified((0, 1), (4, 5, 8))


def test_the_walk_descends_into_the_child_that_the_target_chose() -> None:
    # root -> 1 (node 0), 2 (node 1); 1 -> 3 (node 2); 2 -> 3 (node 3), 4 (node 4)
    tree = make_tree([1, 2, 3, 3, 4], [-1, -1, 0, 1, 1])
    assert verify(tree, [2, 9, 4, 9, 9, 6]) == Verified((1, 4), (2, 4, 6))


def test_a_right_token_under_a_wrong_parent_is_not_accepted() -> None:
    assert verify(make_tree([1, 5], [-1, 0]), [5, 5, 5]) == Verified((), (5,))


def test_of_two_equal_siblings_the_first_is_accepted() -> None:
    assert verify(make_tree([1, 1, 2], [-1, -1, 1]), [1, 3, 2, 0]) == Verified((0,), (1, 3))


@given(trees(margin=0), st.integers(0, 2**32), st.integers(1, 3))
def test_the_path_is_the_longest_along_the_targets_choices(tree: DraftTree, seed: int, kinds: int) -> None:
    few = make_tree([token % kinds for token in tree.tokens.tolist()], tree.parents.tolist())
    choices = random.Random(seed).choices(range(kinds), k=len(few) + 1)
    verified = verify(few, choices)
    before = (-1, *verified.path)
    assert [few.parents[node] for node in verified.path] == list(before[:-1])
    assert [few.tokens[node] for node in verified.path] == [choices[node + 1] for node in before[:-1]]
    assert verified.tokens == tuple(choices[node + 1] for node in before)
    followed = {int(few.tokens[node]) for node in range(len(few)) if few.parents[node] == before[-1]}
    assert verified.tokens[-1] not in followed
