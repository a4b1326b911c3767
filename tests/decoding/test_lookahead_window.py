"""The lookahead window: a Jacobi iteration as part of a draft tree. The model says one more than the last token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.growing_tree import GrowingTree
from decoding.lookahead_window import LookaheadWindow, window_shape
from decoding.tree import DraftTree, depths, limited
from indexes.phrase_pool import PhrasePool
from tests.decoding.scripted import counting, ruled_choices
from tests.decoding.tiny import VOCABULARY


def placed(window: LookaheadWindow, max_nodes: int = 99) -> DraftTree:
    grown = GrowingTree(max_nodes)
    window.place(grown)
    return grown.tree()


def one_pass(window: LookaheadWindow, root: int, pool: PhrasePool, max_nodes: int = 99) -> DraftTree:
    tree = placed(window, max_nodes)
    window.update(root, tree, ruled_choices(counting, [root], tree), pool)
    return tree


def test_a_new_window_is_a_chain_of_tokens_of_the_text_one_more_for_each_level_to_fill() -> None:
    tree = placed(LookaheadWindow(3, 3, (5,)))
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([5, 5, 5], [-1, 0, 1])


def test_a_token_hangs_below_the_token_of_its_column_one_level_before() -> None:
    window, pool = LookaheadWindow(3, 3, (5,)), PhrasePool(9)
    one_pass(window, 1, pool)
    tree = placed(window)
    # column 0 is 6, below the root; level 0 of columns 1 and 2 is the chain 5 5, below each of which level 1 is 6
    assert tree.tokens.tolist() == [6, 5, 6, 5, 6]
    assert tree.parents.tolist() == [-1, -1, 1, 1, 3]
    assert depths(tree).tolist() == [1, 1, 2, 2, 3]


def test_a_whole_column_and_the_choice_below_it_are_an_n_gram() -> None:
    window, pool = LookaheadWindow(3, 3, (5,)), PhrasePool(9)
    one_pass(window, 1, pool)
    assert len(pool) == 0  # the levels fill up first
    one_pass(window, 2, pool)
    assert (pool.newest(2, 9), pool.newest(5, 9), len(pool)) == ([(6, 7)], [(6, 7)], 2)


def test_a_full_window_drops_its_oldest_level_for_the_newest() -> None:
    window, pool = LookaheadWindow(3, 3, (5,)), PhrasePool(9)
    for root in (1, 2):
        one_pass(window, root, pool)
    tree = placed(window)  # the columns are now 7 (below the root), 6 7 and 6 7
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([7, 6, 7, 6, 7], [-1, -1, 1, 1, 3])


def test_columns_that_were_cut_stay_as_they_are() -> None:
    window, pool = LookaheadWindow(3, 3, (5,)), PhrasePool(9)
    tree = placed(window)
    cut = limited(tree, 1, 99, VOCABULARY)
    window.update(1, cut, ruled_choices(counting, [1], cut), pool)
    # only the first of the chain 5 5 5 was seen; the text grew over it, and the others have no second level yet
    assert placed(window).tokens.tolist() == [6, 5, 5]


def test_only_whole_columns_are_placed() -> None:
    window, pool = LookaheadWindow(3, 4, (5,)), PhrasePool(9)
    for root in (1, 2):
        one_pass(window, root, pool)
    assert [len(placed(window, most)) for most in (1, 2, 4, 5, 7, 8)] == [0, 2, 2, 5, 5, 8]


@pytest.mark.parametrize(("columns", "text"), [(0, (1, 2)), (3, ())])
def test_without_columns_or_text_a_window_is_empty(columns: int, text: tuple[int, ...]) -> None:
    window = LookaheadWindow(columns, 3, text)
    for root in range(5):
        assert len(one_pass(window, root, PhrasePool(9))) == 0


@pytest.mark.parametrize(
    ("max_nodes", "shape"),
    [
        (59, (15, 5)),  # 4 * 15 - 1: all of it
        (58, (14, 5)),
        (15, (4, 5)),  # 4 * 4 - 1
        (14, (5, 4)),  # only 3 columns of 4 levels would fit: 3 levels, 3 * 5 - 1
        (7, (4, 3)),
        (3, (4, 2)),
        (2, (3, 2)),
        (1, (2, 2)),
        (0, (0, 5)),
    ],
)
def test_a_window_shrinks_with_the_nodes_allowed(max_nodes: int, shape: tuple[int, int]) -> None:
    assert window_shape(15, 5, max_nodes) == shape


@given(
    st.integers(1, 6), st.integers(2, 5), st.lists(st.integers(0, 9), max_size=6), st.lists(st.integers(0, 60)),
    st.integers(0, 25),
)  # fmt: skip
def test_every_n_gram_of_a_counting_model_ends_in_its_count(
    columns: int, n: int, text: list[int], roots: list[int], max_nodes: int
) -> None:
    window, pool = LookaheadWindow(columns, n, text), PhrasePool(99)
    for root in roots:
        tree = one_pass(window, root, pool, max_nodes)
        assert len(tree) <= max_nodes
    for token in range(VOCABULARY):
        for tail in pool.newest(token, 99):
            assert len(tail) == n - 1
            last = [token, *tail][-2:]
            assert last[1] == counting((last[0],))
