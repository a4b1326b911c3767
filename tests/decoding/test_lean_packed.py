"""How a draft tree is told to the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from decoding.lean.packed import PADDING, bucket, pack_bits, pack_paths, paths, visible, words
from decoding.tree import EMPTY, DraftTree, chain, make_tree
from tests.decoding.hostile import trees

# The root, two children, and below the second one a chain whose nodes lie scattered.
TREE = make_tree([9, 10, 11, 12, 13], [-1, -1, 0, 1, 3])


@pytest.mark.parametrize(
    ("rows", "padded"), [(1, 1), (2, 8), (8, 8), (9, 16), (17, 32), (33, 64), (64, 64), (65, 128), (129, 256)]
)
def test_rows_are_padded_to_the_next_bucket(rows: int, padded: int) -> None:
    assert bucket(rows) == padded


def test_a_row_sees_itself_its_ancestors_and_the_root() -> None:
    seen = [np.flatnonzero(row).tolist() for row in visible(TREE)]
    assert seen == [[0], [0, 1], [0, 2], [0, 1, 3], [0, 2, 4], [0, 2, 4, 5]]


def test_bits_name_columns_from_the_lowest_on() -> None:
    assert words(visible(TREE), 1)[:, 0].tolist() == [1, 3, 5, 11, 21, 53]


def test_bits_beyond_the_64th_are_in_the_next_word() -> None:
    mask = np.zeros((1, 70), np.bool_)
    mask[0, [0, 63, 64, 69]] = True
    assert words(mask, 2).tolist() == [[1 - (1 << 63), 1 + (1 << 5)]]


def test_paths_are_ancestors_in_order_with_the_row_last() -> None:
    found = paths(visible(TREE), 4).tolist()
    assert found == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0], [0, 1, 3, 0], [0, 2, 4, 0], [0, 2, 4, 5]]


def test_a_pass_is_length_tokens_depths_and_bits_with_rows_of_padding() -> None:
    layout, packed = pack_bits(7, TREE, 30)
    assert (layout.rows, layout.width, len(packed)) == (8, 1, layout.size)
    assert packed[:2].tolist() == [30, 0]
    assert layout.tokens(packed).tolist() == [7, 9, 10, 11, 12, 13, 7, 7]
    assert layout.depths(packed).tolist() == [0, 1, 1, 2, 2, 3, PADDING, PADDING]
    assert layout.seen(packed)[:, 0].tolist() == [1, 3, 5, 11, 21, 53, 0, 0]


def test_a_plain_step_is_one_row() -> None:
    layout, packed = pack_bits(7, EMPTY, 30)
    assert (layout.rows, packed.tolist()) == (1, [30, 0, 7, 0, 1])


def test_a_tree_that_is_larger_than_the_rows_takes_several_passes() -> None:
    first, second = pack_paths(7, TREE, 30, 4)
    layout, packed = second
    assert first[0] == layout
    assert packed[:2].tolist() == [30, 4]
    assert layout.tokens(packed).tolist() == [12, 13, 12, 12]
    assert layout.depths(packed).tolist() == [2, 3, PADDING, PADDING]
    assert layout.seen(packed)[:2, :4].tolist() == [[0, 2, 4, 0], [0, 2, 4, 5]]


def test_a_path_that_is_longer_than_the_rows_has_room() -> None:
    layout, packed = pack_paths(7, chain(range(20)), 30, 4)[-1]
    assert layout.seen(packed)[0].tolist()[:21] == list(range(21))


@given(trees(max_size=40, margin=0))
def test_both_forms_say_the_same_of_any_tree(tree: DraftTree) -> None:
    mask = visible(tree)
    layout, packed = pack_bits(1, tree, 5)
    unpacked = np.unpackbits(layout.seen(packed).view(np.uint8), axis=1, bitorder="little")
    assert np.array_equal(unpacked[: len(mask), : len(mask)].astype(bool), mask)
    row = 0
    for other, numbers in pack_paths(1, tree, 5, 8):
        for depth, path in zip(other.depths(numbers).tolist(), other.seen(numbers).tolist(), strict=True):
            if depth != PADDING:
                assert path[: depth + 1] == np.flatnonzero(mask[row]).tolist()
                row += 1
    assert row == len(mask)
