"""LLMA: copies what follows the longest match."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.drafter import DraftRequest, Reference
from decoding.drafters.llma import LlmaDrafter
from tests.decoding.drafting import CONTEXT, REFERENCES, started


def llma_by_brute_force(
    references: Sequence[Sequence[int]], context: Sequence[int], n: int, k: int
) -> set[tuple[tuple[int, ...], int, int]]:
    """All best copies: (tokens, reference, position), of the longest match of at least n tokens."""
    found: dict[int, set[tuple[tuple[int, ...], int, int]]] = {}
    for owner, reference in enumerate(references):
        for end in range(1, len(reference)):
            length = 0
            while length < min(end, len(context)) and reference[end - 1 - length] == context[len(context) - 1 - length]:
                length += 1
            if length >= n:
                found.setdefault(length, set()).add((tuple(reference[end : end + k]), owner, end))
    return found[max(found)] if found else set()


def test_llma_copies_what_follows_the_longest_match() -> None:
    # 2 3 stands in both references, 1 2 3 only in the second
    tree = started(LlmaDrafter(), [(9, 2, 3, 4, 4), (1, 2, 3, 5, 6)]).propose((8, 1, 2, 3), 8)
    assert (tree.tokens.tolist(), tree.parents.tolist(), tree.sources.tolist()) == ([5, 6], [-1, 0], [1, 1])


def test_llma_copies_k_tokens_and_no_more() -> None:
    tree = started(LlmaDrafter(copy_length=3), [tuple(range(10))]).propose((2,), 8)
    assert tree.tokens.tolist() == [3, 4, 5]


ALL_KINDS = DraftRequest(
    (),
    (
        Reference((1, 2), "document"),
        Reference((1, 3), "question"),
        Reference((1, 4), "turn"),
        Reference((1, 5), "answer"),
    ),
)


def test_llma_copies_from_references_of_all_kinds_the_first_of_equals_winning() -> None:
    drafter = LlmaDrafter()
    drafter.start(ALL_KINDS)
    tree = drafter.propose((1,), 8)
    assert (tree.tokens.tolist(), tree.sources.tolist()) == ([2], [0])


@pytest.mark.parametrize(
    ("kinds", "token", "source"),
    [({"answer"}, 5, 3), ({"turn"}, 4, 2), ({"turn", "answer"}, 4, 2), ({"question", "answer"}, 3, 1)],
)
def test_llma_copies_from_the_chosen_kinds_and_names_the_reference_s_place_among_all(
    kinds: set[str], token: int, source: int
) -> None:
    drafter = LlmaDrafter(kinds=frozenset(kinds))
    drafter.start(ALL_KINDS)
    tree = drafter.propose((1,), 8)
    assert (tree.tokens.tolist(), tree.sources.tolist()) == ([token], [source])


def test_llma_needs_a_match_of_n_tokens() -> None:
    drafter = started(LlmaDrafter(match_length=2), [(1, 2, 3, 4)])
    assert len(drafter.propose((9, 2), 8)) == 0
    assert drafter.propose((9, 2, 3), 8).tokens.tolist() == [4]


def test_llma_never_copies_across_the_end_of_a_reference() -> None:
    tree = started(LlmaDrafter(), [(1, 2, 3), (4, 5)]).propose((2,), 8)
    assert tree.tokens.tolist() == [3]


def test_llma_never_matches_across_the_end_of_a_reference() -> None:
    # 1 2 3 would be the longest match, but lies in two references; 2 3 lies in one
    tree = started(LlmaDrafter(), [(7, 1), (2, 3, 5), (0, 2, 3, 6)]).propose((1, 2, 3), 1)
    assert tree.tokens.tolist() == [5]


def test_llma_passes_over_a_longer_match_that_nothing_follows() -> None:
    tree = started(LlmaDrafter(), [(1, 2, 3), (3, 4)]).propose((1, 2, 3), 8)
    assert tree.tokens.tolist() == [4]


def test_llma_takes_the_first_occurrence_of_equally_long_matches() -> None:
    tree = started(LlmaDrafter(), [(5, 1, 6), (5, 1, 7)]).propose((5, 1), 1)
    assert (tree.tokens.tolist(), tree.sources.tolist()) == ([6], [0])


def test_llma_with_a_seed_chooses_among_equal_matches_at_random_and_again_the_same() -> None:
    references = [(5, 1, after) for after in range(10, 20)]
    chosen = [started(LlmaDrafter(tie_seed=seed), references).propose((5, 1), 1).tokens.tolist() for seed in range(20)]
    again = [started(LlmaDrafter(tie_seed=seed), references).propose((5, 1), 1).tokens.tolist() for seed in range(20)]
    assert chosen == again
    assert len({token for [token] in chosen}) > 3


@given(references=REFERENCES, context=CONTEXT, n=st.integers(1, 4), k=st.integers(1, 6))
def test_llma_copies_what_a_search_through_every_position_finds(
    references: list[tuple[int, ...]], context: tuple[int, ...], n: int, k: int
) -> None:
    drafter = started(LlmaDrafter(match_length=n, copy_length=k), references)
    for end in range(1, len(context) + 1):
        best = llma_by_brute_force(references, context[:end], n, k)
        expected = min(best, key=lambda copy: copy[1:], default=((), 0, 0))
        tree = drafter.propose(context[:end], 10)
        assert tuple(tree.tokens.tolist()) == expected[0]
        assert set(tree.sources.tolist()) <= {expected[1]}


@given(references=REFERENCES, context=CONTEXT, seed=st.integers(0, 99))
def test_llma_with_a_seed_copies_one_of_the_longest_matches(
    references: list[tuple[int, ...]], context: tuple[int, ...], seed: int
) -> None:
    tree = started(LlmaDrafter(copy_length=5, tie_seed=seed), references).propose(context, 10)
    allowed = {copy[0] for copy in llma_by_brute_force(references, context, 1, 5)} or {()}
    assert tuple(tree.tokens.tolist()) in allowed


def test_llma_defaults_are_the_papers_best() -> None:
    drafter = LlmaDrafter()
    assert (drafter.match_length, drafter.copy_length, drafter.tie_seed) == (1, 18, None)
