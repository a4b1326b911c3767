"""Draft trees and the pure functions of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.tree import (
    EMPTY,
    ROOT,
    DraftTree,
    ancestor_mask,
    best_chain_first,
    chain,
    depths,
    limited,
    make_tree,
    select,
)
from indexes.errors import DraftTreeError
from tests.decoding.hostile import trees
from tests.decoding.tiny import VOCABULARY

#        root
#       /    \
#      10    11        nodes 0 and 1
#     /  \     \
#    12  13    14      nodes 2, 4 and 3
#         \
#          15          node 5
EXAMPLE = make_tree(
    [10, 11, 12, 14, 13, 15], [-1, -1, 0, 1, 0, 4], [0.6, 0.4, 0.1, 0.4, 0.5, 0.5], sources=[0, 1, 0, 1, 0, 2]
)


def paths(tree: DraftTree) -> list[tuple[int, ...]]:
    """The tokens from the root down to each node."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        found.append((*(found[parent] if parent != ROOT else ()), token))
    return found


def test_depth_is_the_number_of_steps_from_the_root() -> None:
    assert depths(EXAMPLE).tolist() == [1, 1, 2, 2, 2, 3]


def test_a_node_attends_to_itself_and_its_ancestors_only() -> None:
    assert ancestor_mask(EXAMPLE).astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [0, 1, 0, 1, 0, 0],
        [1, 0, 0, 0, 1, 0],
        [1, 0, 0, 0, 1, 1],
    ]


def test_the_empty_tree_has_empty_depths_and_mask() -> None:
    assert (len(EMPTY), depths(EMPTY).shape, ancestor_mask(EMPTY).shape) == (0, (0,), (0, 0))


def test_a_chain_has_one_path_and_one_source() -> None:
    tree = chain([5, 6, 7], source=3)
    assert paths(tree) == [(5,), (5, 6), (5, 6, 7)]
    assert tree.sources.tolist() == [3, 3, 3]


def test_missing_probabilities_are_one_and_missing_sources_minus_one() -> None:
    tree = make_tree([4, 5], [-1, 0])
    assert (tree.probs.tolist(), tree.sources.tolist()) == ([1.0, 1.0], [-1, -1])


@given(trees())
def test_the_depth_of_a_node_is_the_number_of_columns_that_it_attends_to(tree: DraftTree) -> None:
    assert depths(tree).tolist() == ancestor_mask(tree).sum(axis=1).tolist()


@given(trees())
def test_the_depth_of_a_node_is_the_length_of_its_path(tree: DraftTree) -> None:
    assert depths(tree).tolist() == [len(path) for path in paths(tree)]


@given(trees())
def test_ancestors_come_before_a_node(tree: DraftTree) -> None:
    assert not np.triu(ancestor_mask(tree), 1).any()


def test_select_keeps_the_named_nodes_in_that_order_with_all_that_belongs_to_them() -> None:
    kept = select(EXAMPLE, [1, 0, 4, 5])
    assert paths(kept) == [(11,), (10,), (10, 13), (10, 13, 15)]
    assert (kept.probs.tolist(), kept.sources.tolist()) == ([0.4, 0.6, 0.5, 0.5], [1, 0, 0, 2])


def test_select_of_no_node_is_the_empty_tree() -> None:
    assert len(select(EXAMPLE, [])) == 0


def test_limited_leaves_a_tree_within_the_limits_as_it_is() -> None:
    assert paths(limited(EXAMPLE, 6, 3, 16)) == paths(EXAMPLE)


def test_limited_keeps_the_first_max_nodes_nodes() -> None:
    assert paths(limited(EXAMPLE, 4, 3, 16)) == [(10,), (11,), (10, 12), (11, 14)]


def test_limited_drops_nodes_deeper_than_max_depth() -> None:
    assert paths(limited(EXAMPLE, 6, 2, 16)) == [(10,), (11,), (10, 12), (11, 14), (10, 13)]


def test_limited_drops_a_node_outside_the_vocabulary_with_its_descendants() -> None:
    tree = make_tree([16, 1, 15, 2, 3], [-1, 0, -1, 2, 1])
    assert paths(limited(tree, 9, 9, 16)) == [(15,), (15, 2)]


def test_limited_drops_negative_tokens_with_their_descendants() -> None:
    assert paths(limited(make_tree([-1, 1, 0], [-1, 0, -1]), 9, 9, 16)) == [(0,)]


@pytest.mark.parametrize(("max_nodes", "max_depth"), [(0, 3), (-1, 3), (6, 0), (6, -2)])
def test_limited_to_nothing_is_the_empty_tree(max_nodes: int, max_depth: int) -> None:
    assert len(limited(EXAMPLE, max_nodes, max_depth, 16)) == 0


@given(trees(), st.integers(-1, 30), st.integers(-1, 12))
def test_limited_keeps_exactly_the_nodes_whose_whole_path_is_allowed(
    tree: DraftTree, max_nodes: int, max_depth: int
) -> None:
    allowed = [
        path
        for path in paths(tree)[: max(0, max_nodes)]
        if len(path) <= max_depth and all(0 <= token < VOCABULARY for token in path)
    ]
    assert paths(limited(tree, max_nodes, max_depth, VOCABULARY)) == allowed


def test_best_chain_first_goes_down_the_likeliest_child_first() -> None:
    assert paths(best_chain_first(EXAMPLE)) == [(10,), (10, 13), (10, 13, 15), (10, 12), (11,), (11, 14)]


def test_best_chain_first_leaves_children_that_are_equally_likely_in_their_order() -> None:
    tree = make_tree([1, 2, 3, 4], [-1, -1, 0, 1])
    assert paths(best_chain_first(tree)) == [(1,), (1, 3), (2,), (2, 4)]


@given(trees())
def test_best_chain_first_keeps_every_path_and_puts_the_best_chain_in_the_first_columns(
    tree: DraftTree,
) -> None:
    weighted = make_tree(tree.tokens.tolist(), tree.parents.tolist(), [(7 * at % 5) / 5 for at in range(len(tree))])
    ordered = best_chain_first(weighted)
    assert sorted(paths(ordered)) == sorted(paths(weighted))
    best, node = [], ROOT
    while children := [child for child in range(len(tree)) if weighted.parents[child] == node]:
        node = max(children, key=lambda child: (weighted.probs[child], -child))
        best.append(int(weighted.tokens[node]))
    assert ordered.tokens[: len(best)].tolist() == best
    assert ordered.parents[: len(best)].tolist() == list(range(-1, len(best) - 1))


def test_arrays_of_different_lengths_are_refused_with_their_lengths() -> None:
    with pytest.raises(DraftTreeError, match=r"equally long, not \[1, 2\]"):
        make_tree([1, 2], [-1])


@pytest.mark.parametrize(("parents", "node", "parent"), [([-1, 1], 1, 1), ([-1, 0, 5], 2, 5), ([-2], 0, -2)])
def test_a_parent_that_does_not_come_first_is_refused_with_what_is_allowed(
    parents: list[int], node: int, parent: int
) -> None:
    with pytest.raises(DraftTreeError, match=rf"node {node} has parent {parent}; allowed are -1 to {node - 1}"):
        make_tree([1] * len(parents), parents)


def test_tokens_that_are_no_integers_are_refused_by_name() -> None:
    with pytest.raises(DraftTreeError, match=r"tokens must be a flat array of integers, not float64"):
        DraftTree(np.array([1.5]), np.array([-1]), np.ones(1), np.array([-1]))


def test_an_array_that_is_not_flat_is_refused_by_name_and_shape() -> None:
    with pytest.raises(DraftTreeError, match=r"parents must be a flat array of integers, not int64 \(1, 1\)"):
        DraftTree(np.array([1]), np.array([[-1]]), np.ones(1), np.array([-1]))
