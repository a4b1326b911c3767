"""What an n-gram's tree tells beyond that of its end, and what is kept of it within a limit."""

from __future__ import annotations

import numpy as np

from indexes.corpus import encode_ids
from indexes.crest import pack_record
from indexes.crest_selection import first_level, most_telling, told
from indexes.prefix_tree import TokenTree


def test_the_first_level_is_read_with_its_halvings() -> None:
    tree = TokenTree(np.array([3, 4, 5]), np.array([-1, 0, -1]), np.array([0.5, 0.5, 0.25]))
    record = pack_record(encode_ids([1, 2], 2), tree, 2)
    assert first_level(record + b"the next record", 2) == {b"\0\4": 1, b"\0\6": 2}  # ids plus one


def test_what_is_told_is_the_relative_entropy_in_bits() -> None:
    # p = 1/2 and 1/4; the end says 1/8 for the first, nothing (1/1024) for the second
    assert told({b"a": 1, b"b": 2}, {b"a": 3}) == 0.5 * (3 - 1) + 0.25 * (10 - 2)
    assert told({b"a": 1}, {b"a": 1}) == 0


def test_those_worth_most_per_byte_are_kept_within_the_limit() -> None:
    worth, costs = np.array([8.0, 9.0, 8.0, 1.0]), np.array([4.0, 9.0, 4.0, 1.0])
    names = np.array([7, 1, 5, 3], np.uint64)
    assert most_telling(worth, costs, names, 8).tolist() == [True, False, True, False]
    assert most_telling(worth, costs, names, 7).tolist() == [False, False, True, False]  # 5 before 7
    assert most_telling(worth, costs, names, 3).tolist() == [False] * 4
