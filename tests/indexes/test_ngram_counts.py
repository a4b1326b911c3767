"""N-gram counts against dictionaries, and their probabilities worked by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.ngram_counts import ORDERS, TOP, Array, NgramCounts, add_followers, count_ngrams, find_row, probabilities

VOCABULARY = 6
TEXTS = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=20), max_size=5)
CONTEXTS = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=ORDERS)
Followers = dict[tuple[int, ...], Counter[int]]


def by_dictionary(texts: Sequence[Sequence[int]]) -> Followers:
    found: Followers = {}
    for text in texts:
        for order in range(1, ORDERS + 1):
            for at in range(order, len(text)):
                found.setdefault(tuple(text[at - order : at]), Counter())[text[at]] += 1
    return found


def newest_first(context: Sequence[int]) -> Array:
    recent = np.full(ORDERS, -1, np.int64)
    recent[: len(context)] = context[::-1]
    return recent


def row_of(table: NgramCounts, context: Sequence[int]) -> int:
    return int(find_row(table, newest_first(context), len(context)))


def followers(table: NgramCounts, context: Sequence[int]) -> list[tuple[int, int]]:
    row = row_of(table, context)
    if row < 0:
        return []
    entries = slice(table.offsets[row], table.offsets[row + 1])
    return [(int(token), int(count)) for token, count in zip(table.tokens[entries], table.counts[entries], strict=True)]


def shares(table: NgramCounts, context: Sequence[int], candidates: Sequence[int]) -> tuple[list[float], int]:
    """The probability of each candidate after a context, and the longest order known."""
    slots = np.full(len(table.unigram), -1, np.int64)
    slots[list(candidates)] = range(len(candidates))
    out = np.zeros(len(candidates), np.float32)
    known = min(len(context), ORDERS)
    longest = probabilities(
        table, newest_first(context[-ORDERS:]), known, slots, np.array(candidates, np.int64), len(candidates), out
    )
    return out.tolist(), int(longest)


def interpolated(texts: Sequence[Sequence[int]], context: Sequence[int], token: int) -> float:
    """Witten and Bell's formula by dictionary, over a unigram in which every token has .02 more than its count."""
    flat = [one for text in texts for one in text]
    share = (flat.count(token) + 0.02) / (len(flat) + 0.02 * VOCABULARY)
    seen = by_dictionary(texts)
    for order in range(1, len(context) + 1):
        after = seen.get(tuple(context[-order:]))
        if after:
            share = (after[token] + len(after) * share) / (after.total() + len(after))
    return share


@given(TEXTS)
def test_counts_are_those_of_a_dictionary(texts: list[list[int]]) -> None:
    expected = by_dictionary(texts)
    table = count_ngrams(texts, VOCABULARY)
    assert len(table.totals) == len(expected)
    for context, after in expected.items():
        assert dict(followers(table, context)) == dict(after)
        row = row_of(table, context)
        assert (table.totals[row], table.distinct[row]) == (after.total(), len(after))


@given(TEXTS, CONTEXTS)
def test_a_context_that_nothing_follows_has_no_row(texts: list[list[int]], context: list[int]) -> None:
    assert (row_of(count_ngrams(texts, VOCABULARY), context) >= 0) == (tuple(context) in by_dictionary(texts))


@given(TEXTS)
def test_the_most_frequent_followers_come_first(texts: list[list[int]]) -> None:
    table = count_ngrams(texts, VOCABULARY)
    for context in by_dictionary(texts):
        counts = [count for _, count in followers(table, context)]
        assert counts == sorted(counts, reverse=True)


def test_only_the_top_followers_are_kept_but_all_are_counted() -> None:
    texts = [[0, token] for token in range(1, TOP + 9)] + [[0, TOP + 8]]  # the last token follows twice
    table = count_ngrams(texts, TOP + 9)
    kept = followers(table, [0])
    assert (len(kept), kept[0]) == (TOP, (TOP + 8, 2))
    row = row_of(table, [0])
    assert (table.totals[row], table.distinct[row]) == (TOP + 9, TOP + 8)


def test_no_context_reaches_over_the_end_of_a_text() -> None:
    table = count_ngrams([[1, 2], [3, 4]], VOCABULARY)
    assert (followers(table, [1]), followers(table, [2]), followers(table, [2, 3])) == ([(2, 1)], [], [])


@pytest.mark.parametrize("foreign", [-1, -7, VOCABULARY, 1 << 40])
def test_a_token_outside_the_vocabulary_ends_a_text(foreign: int) -> None:
    table = count_ngrams([[1, 2, foreign, 3, 4]], VOCABULARY)
    assert (followers(table, [2]), followers(table, [1, 2]), followers(table, [3])) == ([], [], [(4, 1)])
    assert table.unigram.tolist() == count_ngrams([[1, 2], [3, 4]], VOCABULARY).unigram.tolist()


def test_contexts_of_two_and_more_tokens_that_stand_less_than_min_count_times_are_dropped() -> None:
    table = count_ngrams([[1, 2, 3], [1, 2, 4], [5, 2, 3]], VOCABULARY, min_count=2)
    assert (row_of(table, [1, 2]) >= 0, row_of(table, [5, 2]) >= 0, row_of(table, [5]) >= 0) == (True, False, True)
    assert sorted(followers(table, [1, 2])) == [(3, 1), (4, 1)]


@given(TEXTS, st.integers(1, 4))
def test_min_count_changes_nothing_else(texts: list[list[int]], least: int) -> None:
    table = count_ngrams(texts, VOCABULARY, least)
    for context, after in by_dictionary(texts).items():
        kept = len(context) == 1 or after.total() >= least
        assert dict(followers(table, context)) == (dict(after) if kept else {})


@given(TEXTS, CONTEXTS)
def test_probabilities_are_those_of_the_formula_and_sum_to_one(texts: list[list[int]], context: list[int]) -> None:
    tokens = list(range(VOCABULARY))
    found, _ = shares(count_ngrams(texts, VOCABULARY), context, tokens)
    assert found == pytest.approx([interpolated(texts, context, token) for token in tokens], rel=1e-4)
    assert sum(found) == pytest.approx(1, abs=1e-4)


@given(TEXTS, CONTEXTS, st.sets(st.integers(0, VOCABULARY - 1)))
def test_probabilities_of_a_few_candidates_are_their_shares_of_the_whole(
    texts: list[list[int]], context: list[int], few: set[int]
) -> None:
    table = count_ngrams(texts, VOCABULARY)
    everything, _ = shares(table, context, range(VOCABULARY))
    found, _ = shares(table, context, sorted(few))
    assert found == pytest.approx([everything[token] for token in sorted(few)])


def test_a_probability_worked_by_hand() -> None:
    # unigram of 3: 1.02 / 4.12. After 1: seen twice with 2 different tokens, 3 once: (1 + 2 u) / 4
    found, longest = shares(count_ngrams([[1, 2], [1, 3]], VOCABULARY), [1], [3, 2, 0])
    assert found == pytest.approx([(1 + 2 * 1.02 / 4.12) / 4] * 2 + [2 * 0.02 / 4.12 / 4])
    assert longest == 1


def test_the_longest_order_known_is_told_even_where_a_shorter_one_was_dropped() -> None:
    table = count_ngrams([[1, 2, 3, 4, 5]], VOCABULARY)
    assert [shares(table, [1, 2, 3, 4][-order:], [5])[1] for order in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert shares(table, [0, 0, 3, 4], [5])[1] == 2
    assert shares(table, [0], [5])[1] == 0


def test_no_texts_give_an_even_chance_to_every_token() -> None:
    empty: list[list[list[int]]] = [[], [[]], [[3]]]
    for texts in empty:
        table = count_ngrams(texts, 4)
        assert (row_of(table, [3]), len(table.tokens)) == (-1, 0)
    assert shares(count_ngrams([], 4), [3], [0, 1])[0] == pytest.approx([0.25, 0.25])


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_contexts_that_share_a_slot_of_the_hash_table_are_told_apart(seed: int) -> None:
    # thousands of contexts in a table that is at most half full: many meet in a slot
    text = np.random.default_rng(seed).integers(0, 50_000, 2_000).tolist()
    table = count_ngrams([text], 50_000)
    slots = table.keys[table.keys != 0] & np.uint64(len(table.keys) - 1)
    assert len(np.unique(slots)) < len(slots)
    for context, after in by_dictionary([text[:200]]).items():
        assert dict(after).items() <= dict(followers(table, context)).items()


def added(table: NgramCounts, context: Sequence[int], most: int, before: Sequence[int], room: int) -> list[int]:
    slots, candidates = np.full(len(table.unigram), -1, np.int64), np.zeros(room, np.int64)
    slots[list(before)] = range(len(before))
    candidates[: len(before)] = before
    count = add_followers(table, newest_first(context), len(context), most, slots, candidates, len(before))
    found: list[int] = candidates[:count].tolist()
    assert [slots[token] for token in found] == list(range(count))
    assert (slots >= 0).sum() == count
    return found


def test_followers_of_the_longest_context_are_added_first_and_none_twice() -> None:
    table = count_ngrams([[1, 2, 3], [2, 4], [2, 4]], VOCABULARY)
    assert added(table, [1, 2], 8, [], 8) == [3, 4]  # 3 after 1 2, then 4 and 3 after 2
    assert added(table, [2], 1, [], 8) == [4]
    assert added(table, [1, 2], 8, [4], 8) == [4, 3]


def test_followers_that_find_no_room_are_left_out() -> None:
    table = count_ngrams([[1, 2], [1, 3], [1, 4]], VOCABULARY)
    assert len(added(table, [1], 8, [0], 2)) == 2
