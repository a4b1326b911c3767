"""REST's datastore: what a lookup finds, by hand and by brute force."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.corpus import encode_ids
from indexes.errors import DamagedIndexError, NothingToIndexError, SettingError
from indexes.prefix_tree import frequent_prefixes
from indexes.suffix_array import ORDER, TEXT, RestStore, build_rest
from tests.indexes.stores import HASH, TEXTS, VOCABULARIES, continuations, forge, rest

CONTEXT = st.lists(st.integers(-1, 4), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rest") / "store"


def test_the_tree_merges_what_followed_the_match(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[1, 2, 3, 4], [1, 2, 3, 5], [0, 2, 0]])
    length, tree = store.lookup([9, 1, 2])
    assert (length, tree.tokens.tolist(), tree.parents.tolist()) == (2, [3, 4, 5], [-1, 0, 0])
    assert tree.probs.tolist() == [1.0, 0.5, 0.5]


def test_the_longest_match_counts_and_not_the_most_frequent(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[0, 1, 2, 5], [1, 2, 3], [1, 2, 3]])
    assert store.lookup([0, 1, 2])[1].tokens.tolist() == [5]
    assert store.lookup([4, 1, 2])[1].tokens.tolist() == [3, 5]


def test_a_single_token_is_no_match_by_default_but_can_be(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[1, 2, 3]])
    assert store.lookup([5, 1])[0] == 0
    assert store.lookup([5, 1], shortest=1)[1].tokens.tolist() == [2, 3]


def test_matches_longer_than_asked_for_are_not_looked_for(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[0, 1, 2, 5], [4, 1, 2, 3]])
    length, tree = store.lookup([0, 1, 2], longest=2)
    assert (length, sorted(tree.tokens.tolist())) == (2, [3, 5])


def test_texts_do_not_run_into_each_other(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[1, 2], [3, 4]])
    assert store.lookup([2, 3])[0] == 0
    assert store.lookup([1, 2])[0] == 0  # nothing follows it in its text


def test_where_the_longest_match_ends_a_text_a_shorter_one_is_taken(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[0, 1, 2], [1, 2, 4]])
    assert [store.lookup([0, 1, 2])[0], store.lookup([0, 1, 2])[1].tokens.tolist()] == [2, [4]]


def test_few_of_many_continuations_are_taken_evenly(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[0, 1, 2]] * 50 + [[0, 1, 3]] * 50)
    assert store.lookup([0, 1], most=10)[1].probs.tolist() == [0.5, 0.5]


@settings(deadline=None)
@given(TEXTS, CONTEXT, VOCABULARIES, st.integers(1, 12), st.integers(1, 4), st.integers(1, 5))
def test_lookups_find_what_brute_force_finds(
    folder: Path, texts: list[list[int]], context: list[int], vocabulary: int, segment: int, longest: int, depth: int
) -> None:
    whole = max(map(len, texts)) + 1 + segment  # no text is cut
    store = rest(folder, texts, vocabulary, whole)
    length, tree = store.lookup(context, longest=longest, shortest=1, depth=depth)
    known = [n for n in range(1, min(longest, len(context)) + 1) if continuations(texts, context[-n:], 1)]
    assert length == max(known, default=0)
    if length:
        rows = [[token + 1 for token in row] for row in continuations(texts, context[-length:], depth)]
        expected = frequent_prefixes(np.array([row + [0] * (depth - len(row)) for row in rows]), 64)
        assert tree.tokens.tolist() == expected.tokens.tolist()
        assert tree.parents.tolist() == expected.parents.tolist()
        assert tree.probs.tolist() == expected.probs.tolist()


def test_a_text_longer_than_a_segment_is_cut(tmp_path: Path) -> None:
    store = rest(tmp_path / "s", [[0, 1, 2, 3, 4, 5]], segment=4)  # 0 1 2 3 | 4 5
    assert [store.lookup(context)[1].tokens.tolist() for context in ([1, 2], [2, 3], [3, 4])] == [[3], [], []]


def test_nothing_to_build_from_leaves_no_store(tmp_path: Path) -> None:
    with pytest.raises(NothingToIndexError):
        build_rest(tmp_path / "s", [[]], HASH, 6)
    with pytest.raises(SettingError, match="token id 6"):
        build_rest(tmp_path / "s", [[6]], HASH, 6)
    assert not [path for path in (tmp_path / "s").iterdir() if path.is_dir()]


# Hostile contents


def test_ids_outside_the_vocabulary_are_damage(tmp_path: Path) -> None:
    rest(tmp_path / "s", [[1, 2, 3]])
    forge(tmp_path / "s", {TEXT: encode_ids([1, 2, 500], 2) + b"\0\0"})
    with pytest.raises(DamagedIndexError, match=r"'s' is damaged: its text holds ids outside the vocabulary"):
        RestStore(tmp_path / "s", HASH).lookup([1, 2])


def test_an_order_that_points_behind_the_text_is_damage(tmp_path: Path) -> None:
    rest(tmp_path / "s", [[1, 2, 3]])
    forge(tmp_path / "s", {ORDER: struct.pack("<3I", 0, 2**31, 9)})
    with pytest.raises(DamagedIndexError, match="points behind its segment"):
        RestStore(tmp_path / "s", HASH).lookup([1, 2])


@pytest.mark.parametrize(
    "values",
    [
        {"bounds": None}, {"bounds": []}, {"bounds": [0]}, {"bounds": [0, "4"]}, {"bounds": [1, 4]}, {"bounds": [0, 9]},
        {"sizes_of_segments": [4]}, {"sizes_of_segments": [-1]}, {"sizes_of_segments": [2]}, {"vocabulary": 70_000},
        {"bounds": [0], "sizes_of_segments": []}, {"bounds": [0, 2, 1, 4], "sizes_of_segments": [1, 1, 1]},
        {"vocabulary": 0}, {"vocabulary": "6"}, {"vocabulary": True}, {"vocabulary": None},
    ],
)  # fmt: skip
def test_a_manifest_that_cannot_be_is_damage(tmp_path: Path, values: dict[str, Any]) -> None:
    rest(tmp_path / "s", [[1, 2, 3]])
    forge(tmp_path / "s", **values)
    with pytest.raises(DamagedIndexError, match="'s' is damaged"):
        RestStore(tmp_path / "s", HASH)


@settings(deadline=None)
@given(st.binary(min_size=8, max_size=8), st.binary(min_size=12, max_size=12), st.lists(st.integers(0, 5), max_size=6))
def test_any_contents_give_a_tree_or_are_damage(folder: Path, text: bytes, order: bytes, context: list[int]) -> None:
    rest(folder, [[1, 2, 3]])
    forge(folder, {TEXT: text, ORDER: order})
    try:
        _, tree = RestStore(folder, HASH).lookup(context, shortest=1)
    except DamagedIndexError:
        return
    assert all(0 <= token < 6 for token in tree.tokens.tolist())
    assert all(parent < at for at, parent in enumerate(tree.parents.tolist()))
