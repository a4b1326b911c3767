"""References joined end to end, and matches that never cross from one into the next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indexes.reference import GROWING, UNKNOWN_END, ReferenceIndex

REFERENCES = st.lists(st.lists(st.integers(0, 3), max_size=20), max_size=4)
TEXT = st.lists(st.integers(0, 4), max_size=20)


def test_every_token_knows_its_reference_and_where_it_starts_and_ends() -> None:
    index = ReferenceIndex([[5, 6], [], [5, 7, 5]])
    assert index.tokens == [5, 6, 5, 7, 5]
    assert index.starts == [0, 0, 2, 2, 2]
    assert index.ends == [2, 2, 5, 5, 5]
    assert index.owners == [0, 0, 2, 2, 2]


def test_positions_of_a_token_ascend_over_all_references() -> None:
    assert ReferenceIndex([[5, 6], [], [5, 7, 5]]).positions == {5: [0, 2, 4], 6: [1], 7: [3]}


def test_no_references_make_an_empty_index() -> None:
    index = ReferenceIndex([])
    assert (index.tokens, index.positions, index.extend_matches({}, 1)) == ([], {}, {})


def test_matches_grow_by_one_where_the_text_goes_on_and_begin_anew_elsewhere() -> None:
    index = ReferenceIndex([[1, 2, 1, 3]])
    once = index.extend_matches({}, 1)
    assert once == {0: 1, 2: 1}
    assert index.extend_matches(once, 3) == {3: 2}
    assert index.extend_matches(once, 2) == {1: 2}


def test_a_match_does_not_cross_from_one_reference_into_the_next() -> None:
    index = ReferenceIndex([[1], [2]])
    assert index.extend_matches(index.extend_matches({}, 1), 2) == {1: 1}


def test_a_token_that_stands_nowhere_ends_all_matches() -> None:
    index = ReferenceIndex([[1, 2]])
    assert index.extend_matches({0: 1}, 9) == {}


def test_a_growing_reference_comes_last_has_no_owner_and_no_end_yet() -> None:
    index = ReferenceIndex([[5, 6]])
    index.append([7])
    index.append([5, 8])
    assert index.tokens == [5, 6, 7, 5, 8]
    assert index.starts == [0, 0, 2, 2, 2]
    assert index.owners == [0, 0, GROWING, GROWING, GROWING]
    assert index.ends == [2, 2, UNKNOWN_END, UNKNOWN_END, UNKNOWN_END]
    assert index.positions == {5: [0, 3], 6: [1], 7: [2], 8: [4]}


def test_a_match_does_not_cross_from_a_reference_into_the_growing_one() -> None:
    index = ReferenceIndex([[1]])
    index.append([2])
    assert index.extend_matches(index.extend_matches({}, 1), 2) == {1: 1}


@given(REFERENCES, TEXT)
def test_matches_are_the_longest_suffixes_of_the_text_that_end_at_each_position(
    references: list[list[int]], text: list[int]
) -> None:
    index = ReferenceIndex(references)
    matches: dict[int, int] = {}
    for end, token in enumerate(text, start=1):
        matches = index.extend_matches(matches, token)
        expected: dict[int, int] = {}
        offset = 0
        for reference in references:
            for stop in range(1, len(reference) + 1):
                fits = [
                    size
                    for size in range(1, min(stop, end) + 1)
                    if reference[stop - size : stop] == text[end - size : end]
                ]
                if fits:
                    expected[offset + stop - 1] = max(fits)
            offset += len(reference)
        assert matches == expected
