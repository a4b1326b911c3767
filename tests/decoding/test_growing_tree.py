"""Growing a draft tree, and finding its nodes again."""

from __future__ import annotations

from decoding.growing_tree import GrowingTree, children_of, follow
from decoding.tree import ROOT, make_tree


def test_chains_that_begin_alike_share_their_first_nodes() -> None:
    grown = GrowingTree(9)
    assert grown.add_chain(ROOT, [1, 2, 3]) == 2
    assert grown.add_chain(ROOT, [1, 2, 4]) == 3
    tree = grown.tree()
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([1, 2, 3, 4], [-1, 0, 1, 1])


def test_a_full_tree_takes_no_more_but_still_knows_its_nodes() -> None:
    grown = GrowingTree(2)
    assert grown.add_chain(ROOT, [1, 2, 3]) == 1
    assert (grown.room, grown.add(ROOT, 5), grown.add(0, 2)) == (0, None, 1)


def test_a_tree_of_no_nodes_or_fewer_is_empty() -> None:
    for most in (0, -3):
        grown = GrowingTree(most)
        assert grown.add_chain(ROOT, [1, 2]) == ROOT
        assert len(grown.tree()) == 0


def test_probs_fall_along_a_chain_and_never_rise_above_the_parent_s() -> None:
    grown = GrowingTree(9)
    end = grown.add_chain(ROOT, [1, 2], 0.5, 0.5)
    grown.add(end, 3, 0.9)
    assert grown.tree().probs.tolist() == [0.5, 0.25, 0.25]


def test_following_ends_where_the_tree_was_cut() -> None:
    children = children_of(make_tree([1, 2, 5, 3], [-1, 0, -1, 1]))
    assert follow(children, ROOT, [1, 2, 3, 4]) == [0, 1, 3]
    assert follow(children, 0, [2, 9, 3]) == [1]
    assert follow(children, ROOT, []) == []


def test_of_two_children_with_one_token_the_first_is_found() -> None:
    assert follow(children_of(make_tree([7, 7], [-1, -1])), ROOT, [7]) == [0]
