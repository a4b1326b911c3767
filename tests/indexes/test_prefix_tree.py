from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.prefix_tree import TokenTree, frequent_prefixes

ROWS = st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=30)


def rows_of(continuations: list[list[int]], depth: int = 4) -> npt.NDArray[np.int64]:
    return np.array(sorted([token + 1 for token in row] + [0] * (depth - len(row)) for row in continuations))


def paths(tree: TokenTree) -> dict[tuple[int, ...], float]:
    found: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return dict(zip(found, tree.probs.tolist(), strict=True))


def test_nodes_come_by_frequency_then_depth_then_id() -> None:
    tree = frequent_prefixes(rows_of([[1, 2], [1, 3], [1, 3], [2]]), 10)
    # of 4 continuations 3 begin with 1, 2 with 1 3, one with 2 and one with 1 2
    assert tree.tokens.tolist() == [1, 3, 2, 2]
    assert tree.parents.tolist() == [-1, 0, -1, 0]
    assert tree.probs.tolist() == [0.75, 0.5, 0.25, 0.25]


def test_a_single_continuation_is_a_chain() -> None:
    tree = frequent_prefixes(rows_of([[3, 0, 5]]), 2)
    assert (tree.tokens.tolist(), tree.parents.tolist(), tree.probs.tolist()) == ([3, 0], [-1, 0], [1.0, 1.0])


def test_prefixes_seen_less_than_asked_for_are_left_out() -> None:
    assert paths(frequent_prefixes(rows_of([[1, 2], [1, 3], [1, 3], [2]]), 10, least=2)) == {(1,): 0.75, (1, 3): 0.5}


@pytest.mark.parametrize("limit", [0, -1])
def test_no_room_gives_no_tree(limit: int) -> None:
    assert len(frequent_prefixes(rows_of([[1], [2]]), limit)) == 0
    assert len(frequent_prefixes(rows_of([[1, 2]]), limit)) == 0


@given(ROWS, st.integers(1, 3))
def test_without_a_limit_all_prefixes_are_there_with_their_shares(rows: list[list[int]], least: int) -> None:
    counts = Counter(tuple(row[:end]) for row in rows for end in range(1, len(row) + 1))
    expected = {path: count / len(rows) for path, count in counts.items() if count >= least}
    assert paths(frequent_prefixes(rows_of(rows), 1000, least)) == expected


@given(ROWS, st.integers(1, 40))
def test_a_smaller_limit_gives_the_first_nodes(rows: list[list[int]], limit: int) -> None:
    few, all_ = frequent_prefixes(rows_of(rows), limit), frequent_prefixes(rows_of(rows), 1000)
    assert few.tokens.tolist() == all_.tokens.tolist()[:limit]
    assert few.parents.tolist() == all_.parents.tolist()[:limit]
