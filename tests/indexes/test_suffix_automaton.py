"""The suffix automaton against a search through all substrings."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.suffix_automaton import SuffixAutomaton

FEW = st.text("abc", max_size=30)


def by_brute_force(sequence: Sequence[object], text: Sequence[object]) -> list[tuple[int, int]]:
    """For each prefix of the text: its longest suffix in the sequence, and where that ends first."""
    found = []
    for end in range(1, len(text) + 1):
        for length in range(min(end, len(sequence)), -1, -1):
            ends = [
                at for at in range(length, len(sequence) + 1) if sequence[at - length : at] == text[end - length : end]
            ]
            if ends:
                found.append((length, ends[0]))
                break
    return found


def test_the_longest_suffixes_of_a_text_worked_by_hand() -> None:
    # In "abcbc": a | ab | bc ends first at 3 | bcb | b x is nowhere: 0 | c ends first at 3
    assert list(SuffixAutomaton("abcbc").longest_suffixes("abxc")) == [(1, 1), (2, 2), (0, 0), (1, 3)]
    assert list(SuffixAutomaton("abcbc").longest_suffixes("bcbb")) == [(1, 2), (2, 3), (3, 4), (1, 2)]


def test_a_text_that_stands_whole_in_the_sequence_matches_whole() -> None:
    assert list(SuffixAutomaton("xxabcd").longest_suffixes("abcd"))[-1] == (4, 6)


def test_an_empty_sequence_matches_nothing() -> None:
    assert list(SuffixAutomaton().longest_suffixes("ab")) == [(0, 0), (0, 0)]


def test_an_empty_text_has_no_ends() -> None:
    assert list(SuffixAutomaton("ab").longest_suffixes("")) == []


def test_symbols_are_compared_whole() -> None:
    assert list(SuffixAutomaton(["cat", "sat"]).longest_suffixes(["cat", "s", "sat"])) == [(1, 1), (0, 0), (1, 2)]


@settings(max_examples=400)
@given(FEW, FEW)
def test_lengths_and_first_ends_are_those_of_a_search_through_all_substrings(sequence: str, text: str) -> None:
    assert list(SuffixAutomaton(sequence).longest_suffixes(text)) == by_brute_force(sequence, text)


@given(FEW, FEW, FEW)
def test_one_automaton_answers_for_many_texts(sequence: str, first: str, second: str) -> None:
    automaton = SuffixAutomaton(sequence)
    list(automaton.longest_suffixes(first))
    assert list(automaton.longest_suffixes(second)) == by_brute_force(sequence, second)


def test_repetitive_sequences_take_linear_time() -> None:
    start = time.perf_counter()
    for sequence in ("a" * 50_000, "ab" * 25_000, "a" * 25_000 + "b" * 25_000):
        assert list(SuffixAutomaton(sequence).longest_suffixes(sequence))[-1] == (50_000, 50_000)
    assert time.perf_counter() - start < 20
