"""CREST's datastore: what is kept, what a lookup finds, and what hostile contents do."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import corpus_passes, crest_build
from indexes.corpus import encode_ids
from indexes.crest import BUCKETS, MAX_NODES, RECORDS, CrestStore, pack_record
from indexes.crest_build import CrestSettings, build_crest
from indexes.errors import DamagedIndexError, NothingToIndexError, SettingError
from indexes.files import MANIFEST, current_generation
from indexes.prefix_tree import TokenTree, frequent_prefixes
from tests.indexes.stores import HASH, TEXTS, VOCABULARIES, continuations, crest, forge

ALL = CrestSettings(size=1000, max_ngram=3, depth=4)
LIMITED = CrestSettings(size=1000, max_ngram=3, depth=4, limit_bytes=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crest") / "store"


def tree_of(tokens: list[int], parents: list[int], probs: list[float]) -> TokenTree:
    return TokenTree(np.array(tokens), np.array(parents), np.array(probs))


def entries(folder: Path) -> int:
    return int(json.loads((current_generation(folder)[0] / MANIFEST).read_bytes())["entries"])


def size(folder: Path) -> int:
    """The bytes of both files."""
    return sum((current_generation(folder)[0] / name).stat().st_size for name in (BUCKETS, RECORDS))


def test_the_tree_of_the_longest_stored_n_gram_is_found(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2, 3, 4], [1, 2, 3, 5], [0, 2, 0]])
    length, tree = store.lookup([5, 1, 2])
    assert (length, tree.tokens.tolist(), tree.parents.tolist()) == (2, [3, 4, 5], [-1, 0, 0])
    assert store.lookup([4, 2])[1].tokens.tolist() == [3, 0, 4, 5]  # after 2: twice 3, once 0
    assert store.lookup([4])[0] == 0  # nothing follows it anywhere


def test_probabilities_are_kept_to_the_nearest_power_of_two(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2]] * 5 + [[1, 3]] * 2 + [[1, 4]])
    # 5/8 is nearest to 1/2 in powers of two (log2 is -0.68), 2/8 and 1/8 are powers
    assert store.lookup([1])[1].probs.tolist() == [0.5, 0.25, 0.125]


def test_only_the_most_common_n_grams_for_each_n_are_kept(tmp_path: Path) -> None:
    # 1-grams: 1 three times, 2 twice; 2-grams: 1 2 and 2 1 twice (a tie); 1 3 and 3 end their text
    store = crest(tmp_path / "s", [[1, 2, 1, 2, 1, 3]], CrestSettings(size=1, max_ngram=2))
    assert [store.lookup(context)[0] for context in ([1], [2], [1, 2], [2, 1])] == [1, 0, 2, 1]
    assert entries(tmp_path / "s") == 2


def test_an_n_gram_with_the_tree_of_its_own_end_takes_no_space(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2, 3, 4]])
    assert entries(tmp_path / "s") == 3  # 1, 2 and 3: what follows 1 2 is what follows 2
    assert (store.lookup([1, 2])[0], store.lookup([1, 2])[1].tokens.tolist()) == (1, [3, 4])


def test_continuations_seen_too_seldom_are_left_out(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2, 3], [1, 2, 4]], CrestSettings(least=2))
    assert store.lookup([1])[1].tokens.tolist() == [2]
    assert store.lookup([2])[0] == 0


def test_nodes_and_depth_limit_a_tree(tmp_path: Path) -> None:
    flat = crest(tmp_path / "a", [[1, 2, 3], [1, 4, 5]], CrestSettings(depth=1))
    small = crest(tmp_path / "b", [[1, 2, 3], [1, 4, 5]], CrestSettings(nodes=1))
    assert flat.lookup([1])[1].tokens.tolist() == [2, 4]
    assert small.lookup([1])[1].tokens.tolist() == [2]


def test_texts_do_not_run_into_each_other(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2], [3, 4]])
    assert [store.lookup(context)[0] for context in ([2], [2, 3])] == [0, 1]


@settings(deadline=None)
@given(TEXTS, st.lists(st.integers(-1, 6), max_size=6), VOCABULARIES)
def test_a_store_of_everything_finds_what_brute_force_finds(
    folder: Path, texts: list[list[int]], context: list[int], vocabulary: int
) -> None:
    length, tree = crest(folder, texts, ALL, vocabulary).lookup(context)
    known = [n for n in range(1, min(3, len(context)) + 1) if continuations(texts, context[-n:], 1)]
    assert (length > 0) == bool(known)
    if known:
        assert length <= known[-1]  # less where the shorter one has the same tree
        rows = [[token + 1 for token in row] for row in continuations(texts, context[-known[-1] :], 4)]
        expected = frequent_prefixes(np.array([row + [0] * (4 - len(row)) for row in rows]), MAX_NODES)
        assert (tree.tokens.tolist(), tree.parents.tolist()) == (expected.tokens.tolist(), expected.parents.tolist())
        assert np.all((tree.probs <= expected.probs * 2**0.51) & (np.diff(tree.probs, prepend=1.0) <= 0))


@settings(deadline=None)
@given(TEXTS, st.integers(1, 6))
def test_a_store_does_not_depend_on_how_many_places_are_sorted_at_once(
    folder: Path, texts: list[list[int]], most: int
) -> None:
    def contents() -> list[bytes]:
        found = []
        for chosen in (ALL, LIMITED):
            build_crest(folder, texts, HASH, 6, chosen)
            found += [(current_generation(folder)[0] / name).read_bytes() for name in (BUCKETS, RECORDS)]
        return found

    whole = contents()
    with patch.object(corpus_passes, "PASS", most):
        assert contents() == whole


def test_with_limited_bytes_the_n_grams_that_tell_most_are_kept(tmp_path: Path) -> None:
    # 1 2 is followed by 3 where 2 alone tells 3 or 4 apart by halves; 5 2 4 says no more than 1 2 3, and is rarer.
    texts = [[1, 2, 3]] * 9 + [[5, 2, 4]] * 3
    least = 1 + 16  # two of the six records, of 7 or 9 bytes and half a byte of buckets each, and both bounds
    whole = crest(tmp_path / "a", texts, CrestSettings(max_ngram=2, depth=1))
    small = crest(tmp_path / "b", texts, CrestSettings(max_ngram=2, depth=1, limit_bytes=least + 18))
    assert [whole.lookup(context)[0] for context in ([1], [5], [2], [1, 2], [5, 2])] == [1, 1, 1, 2, 2]
    # bits told per byte: 1 -> 2: 9 * 10 / 7.5 = 12; 2: 12 * (.75 * 10 + .25 * 8) / 10.5 = 10.9; the rest less
    assert [small.lookup(context)[0] for context in ([1], [5], [2], [1, 2])] == [1, 0, 1, 1]
    assert size(tmp_path / "b") <= least + 18


@settings(deadline=None)
@given(TEXTS, st.integers(40, 400))
def test_limited_bytes_are_never_exceeded(folder: Path, texts: list[list[int]], limit: int) -> None:
    with contextlib.suppress(SettingError):  # the first tree is greater
        build_crest(folder, texts, HASH, 6, CrestSettings(max_ngram=3, limit_bytes=limit))
        assert size(folder) <= limit


def test_bytes_too_few_for_any_tree_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="limit_bytes is 5, which is too little for any tree"):
        build_crest(tmp_path / "s", [[1, 2, 3]], HASH, 6, CrestSettings(limit_bytes=5))


def test_of_very_many_continuations_a_spread_of_them_is_merged(tmp_path: Path) -> None:
    with patch.object(crest_build, "MOST", 10):
        store = crest(tmp_path / "s", [[0, 1]] * 500 + [[0, 2]] * 500)
        assert store.lookup([0])[1].probs.tolist() == [0.5, 0.5]
        with patch.object(corpus_passes, "PASS", 100):  # 0 alone fills ten passes
            assert crest(tmp_path / "s", [[0, 1]] * 500 + [[0, 2]] * 500).lookup([0])[1].probs.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("texts", [[], [[]], [[1], [2]]])
def test_texts_without_a_continuation_give_no_store(tmp_path: Path, texts: list[list[int]]) -> None:
    with pytest.raises(NothingToIndexError):
        build_crest(tmp_path / "s", texts, HASH, 6)
    assert not [path for path in (tmp_path / "s").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("name", "value"),
    [("size", 0), ("max_ngram", 0), ("max_ngram", 17), ("nodes", 64), ("depth", 0), ("least", 0), ("limit_bytes", 0)],
)
def test_settings_that_cannot_be_are_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} is {value}; it must be 1 to"):
        CrestSettings(**{name: value})


# Hostile contents: whoever writes them knows checksums


def one_record(folder: Path, record: bytes, buckets: bytes | None = None) -> CrestStore:
    """A store whose only bucket holds this."""
    crest(folder, [[1, 2, 3]])
    forge(folder, {RECORDS: record, BUCKETS: struct.pack("<2I", 0, len(record)) if buckets is None else buckets})
    return CrestStore(folder, HASH)


def record(ngram: list[int], tokens: list[int], parents: list[int]) -> bytes:
    return pack_record(encode_ids(ngram, 2), tree_of(tokens, parents, [0.5] * len(tokens)), 2)


def test_a_sound_record_in_the_only_bucket_is_found(tmp_path: Path) -> None:
    store = one_record(tmp_path / "s", record([1], [2, 3], [-1, 0]))
    assert store.lookup([1])[1].tokens.tolist() == [2, 3]


def test_an_n_gram_never_gets_the_tree_of_another_in_its_bucket(tmp_path: Path) -> None:
    store = one_record(tmp_path / "s", record([1], [2], [-1]) + record([4, 1], [3], [-1]))
    # every n-gram has the same bucket here; the bytes of 4 1 contain those of 1
    assert [store.lookup(context)[1].tokens.tolist() for context in ([1], [4, 1], [4], [2])] == [[2], [3], [], []]


@pytest.mark.parametrize(
    "bad",
    [
        record([1], [2, 3], [-1, 1]),  # its own parent
        record([1], [2, 3], [1, 0]),  # a cycle, the parent after the child
        record([1], [2, 6], [-1, 0]),  # the vocabulary has 6 ids
        record([1], [2], [-1])[:-3] + b"\0\0\0",  # the zero that ends texts
        record([1], [2], [-1])[:-1],  # cut
        b"\x00" + record([1], [2], [-1])[1:],  # no nodes
        b"\x40" + record([1], [2], [-1])[1:],  # 64 nodes
        record([2], [2], [-1]) + b"\x01\x01\x00\x02",  # cut in the second record
        b"\x01\x09" + record([1], [2], [-1]),  # n = 9
    ],
)
def test_a_record_that_cannot_be_is_damage(tmp_path: Path, bad: bytes) -> None:
    store = one_record(tmp_path / "s", bad)
    with pytest.raises(DamagedIndexError, match=r"'s' is damaged: bucket 0 holds .*build it again"):
        store.lookup([1])


@pytest.mark.parametrize("bounds", [(9, 0), (0, 2**32 - 1), (5, 3)])
def test_a_bucket_outside_the_records_is_damage(tmp_path: Path, bounds: tuple[int, int]) -> None:
    store = one_record(tmp_path / "s", record([1], [2], [-1]), struct.pack("<2I", *bounds))
    with pytest.raises(DamagedIndexError, match="bucket 0 reaches from"):
        store.lookup([1])


def test_a_huge_bucket_is_damage_and_is_not_read(tmp_path: Path) -> None:
    store = one_record(tmp_path / "s", record([2], [2], [-1]) * 20_000)
    with pytest.raises(DamagedIndexError, match="bucket 0 reaches from"):
        store.lookup([1])


@pytest.mark.parametrize("buckets", [b"", b"\0" * 4, b"\0" * 7, b"\0" * 9])
def test_bounds_that_are_none_are_damage(tmp_path: Path, buckets: bytes) -> None:
    with pytest.raises(DamagedIndexError, match="buckets"):
        one_record(tmp_path / "s", record([1], [2], [-1]), buckets)


@pytest.mark.parametrize("values", [{"max_ngram": 0}, {"max_ngram": 17}, {"vocabulary": 2**24}, {"max_ngram": None}])
def test_a_manifest_that_cannot_be_is_damage(tmp_path: Path, values: dict[str, Any]) -> None:
    crest(tmp_path / "s", [[1, 2, 3]])
    forge(tmp_path / "s", **values)
    with pytest.raises(DamagedIndexError, match="'s' is damaged"):
        CrestStore(tmp_path / "s", HASH)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=60), st.lists(st.integers(-1, 2), min_size=1, max_size=5))
def test_any_records_give_a_tree_or_are_damage(folder: Path, data: bytes, context: list[int]) -> None:
    store = one_record(folder, b"\x01\x01\0\x02" + data)  # begins like a record of 1
    try:
        _, tree = store.lookup(context)
    except DamagedIndexError:
        return
    assert all(0 <= token < 6 for token in tree.tokens.tolist())
    assert all(parent < at for at, parent in enumerate(tree.parents.tolist()))


@settings(deadline=None)
@given(st.data())
def test_flipped_bytes_never_escape_as_another_error(folder: Path, data: st.DataObject) -> None:
    crest(folder, [[1, 2, 3, 1, 2, 4, 0, 1, 2, 3], [0, 1, 2]])
    generation = current_generation(folder)[0]
    for name in (BUCKETS, RECORDS):
        contents = bytearray((generation / name).read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(contents) - 1), max_size=4)):
            contents[at] ^= 1 << data.draw(st.integers(0, 7))
        (generation / name).write_bytes(contents)
    store = CrestStore(folder, HASH)
    for token in range(6):
        try:
            tree = store.lookup([1, 2, token])[1]
        except DamagedIndexError:
            continue
        assert all(0 <= drafted < 6 for drafted in tree.tokens.tolist())
