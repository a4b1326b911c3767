"""The phrase pool: few phrases per first token, the least recently used evicted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.errors import SettingError
from indexes.phrase_pool import PhrasePool


def pool_of(per_token: int, *phrases: tuple[int, ...]) -> PhrasePool:
    pool = PhrasePool(per_token)
    for phrase in phrases:
        pool.add(phrase)
    return pool


def test_the_newest_phrases_of_a_token_come_first() -> None:
    pool = pool_of(9, (1, 2, 3), (1, 4), (5, 6), (1, 7))
    assert pool.newest(1, 2) == [(7,), (4,)]
    assert pool.newest(5, 2) == [(6,)]
    assert pool.newest(2, 2) == []


def test_the_least_recently_used_phrase_of_a_full_token_goes() -> None:
    pool = pool_of(2, (1, 2), (1, 3), (8, 9), (1, 2), (1, 4))  # (1, 2) was used again after (1, 3)
    assert pool.newest(1, 9) == [(4,), (2,)]
    assert pool.newest(8, 9) == [(9,)]


def test_a_phrase_that_is_there_already_is_not_there_twice() -> None:
    assert len(pool_of(9, (1, 2), (1, 2), (1, 2, 2))) == 2


def test_a_phrase_of_one_token_says_nothing_and_is_left_out() -> None:
    assert len(pool_of(9, (), (1,))) == 0


def test_a_removed_phrase_is_gone_and_removing_it_again_is_no_error() -> None:
    pool = pool_of(9, (1, 2), (1, 3))
    for _ in range(2):
        pool.remove((1, 2))
    pool.remove((7, 7))
    assert pool.newest(1, 9) == [(3,)]


def test_after_reset_nothing_is_known() -> None:
    pool = pool_of(9, (1, 2))
    pool.reset()
    assert (len(pool), pool.newest(1, 9)) == (0, [])


@pytest.mark.parametrize("per_token", [0, -1])
def test_a_pool_without_room_is_refused(per_token: int) -> None:
    with pytest.raises(SettingError, match=f"per_token is {per_token}; .* at least 1"):
        PhrasePool(per_token)


@given(st.integers(1, 3), st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=3).map(tuple), max_size=40))
def test_a_pool_holds_the_last_used_phrases_of_each_token(per_token: int, phrases: list[tuple[int, ...]]) -> None:
    pool = pool_of(per_token, *phrases)
    for token in range(3):
        last = list(dict.fromkeys(phrase[1:] for phrase in reversed(phrases) if phrase[0] == token))
        assert pool.newest(token, 99) == last[:per_token]
