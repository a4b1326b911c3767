"""Prompt lookup: copies what follows the first match in prompt and answer."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from decoding.drafters.prompt_lookup import PromptLookupDrafter
from tests.decoding.drafting import CONTEXT, TOKENS, started


def lookup_by_brute_force(sequence: Sequence[int], longest: int, count: int) -> list[int]:
    for length in range(min(longest, len(sequence) - 1), 0, -1):
        for start in range(len(sequence) - length):
            if list(sequence[start : start + length]) == list(sequence[-length:]):
                return list(sequence[start + length : start + length + count])
    return []


def test_prompt_lookup_copies_what_follows_the_first_match_of_the_last_three_tokens() -> None:
    tree = started(PromptLookupDrafter(), [], (3, 9, 1, 2, 3, 4, 5, 1, 2, 3, 6)).propose((1, 2, 3), 2)
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([4, 5], [-1, 0])


def test_prompt_lookup_falls_back_to_two_tokens_and_to_one() -> None:
    drafter = started(PromptLookupDrafter(), [], (2, 3, 4, 8, 9))
    assert drafter.propose((7, 2, 3), 1).tokens.tolist() == [4]
    assert drafter.propose((7, 2, 3, 8), 1).tokens.tolist() == [9]


def test_prompt_lookup_finds_what_was_emitted_before() -> None:
    assert started(PromptLookupDrafter(), [], (0,)).propose((1, 2, 5, 1, 2), 8).tokens.tolist() == [5, 1, 2]


def test_prompt_lookup_leaves_references_aside() -> None:
    assert len(started(PromptLookupDrafter(), [(1, 2, 3)], (9,)).propose((1, 2), 8)) == 0


@given(prompt=TOKENS, context=CONTEXT, longest=st.integers(1, 4), count=st.integers(1, 6))
def test_prompt_lookup_copies_what_a_search_from_the_front_finds(
    prompt: tuple[int, ...], context: tuple[int, ...], longest: int, count: int
) -> None:
    drafter = started(PromptLookupDrafter(longest, count), [], prompt)
    for end in range(1, len(context) + 1):
        found = drafter.propose(context[:end], 10).tokens.tolist()
        assert found == lookup_by_brute_force(prompt + context[:end], longest, count)


def test_prompt_lookup_defaults_are_three_tokens_matched_and_ten_copied() -> None:
    drafter = PromptLookupDrafter()
    assert (drafter.max_ngram, drafter.copy_length) == (3, 10)
