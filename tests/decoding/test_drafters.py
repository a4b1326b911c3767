"""The drafters: what each proposes, from plain token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.drafter import Drafter, DraftRequest, Reference
from decoding.drafters import DRAFTERS
from decoding.drafters.llma import LlmaDrafter
from decoding.drafters.ngram_trie import NgramTrieDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.drafters.prompt_lookup import PromptLookupDrafter
from decoding.tree import DraftTree

MAKERS: dict[str, Callable[[], Drafter]] = dict(DRAFTERS) | {"llma, random ties": lambda: LlmaDrafter(tie_seed=1)}
every_drafter = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())

TOKENS = st.lists(st.integers(0, 3), max_size=25).map(tuple)
REFERENCES = st.lists(TOKENS, max_size=4)
CONTEXT = st.lists(st.integers(0, 4), min_size=1, max_size=15).map(tuple)


def request(references: Sequence[Sequence[int]], prompt: Sequence[int] = ()) -> DraftRequest:
    return DraftRequest(tuple(prompt), tuple(Reference(tuple(tokens)) for tokens in references))


def started(drafter: Drafter, references: Sequence[Sequence[int]], prompt: Sequence[int] = ()) -> Drafter:
    drafter.start(request(references, prompt))
    return drafter


def plain(tree: DraftTree) -> list[list[float]]:
    return [tree.tokens.tolist(), tree.parents.tolist(), tree.probs.tolist(), tree.sources.tolist()]


def answer(drafter: Drafter, asked: DraftRequest, context: Sequence[int]) -> list[list[list[float]]]:
    """All drafts for a growing context."""
    drafter.start(asked)
    return [plain(drafter.propose(context[: end + 1], 8)) for end in range(len(context))]


@every_drafter
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT, max_nodes=st.integers(0, 12))
def test_no_drafter_proposes_more_than_max_nodes(
    make: Callable[[], Drafter],
    references: list[tuple[int, ...]],
    prompt: tuple[int, ...],
    context: tuple[int, ...],
    max_nodes: int,
) -> None:
    assert len(started(make(), references, prompt).propose(context, max_nodes)) <= max_nodes


@every_drafter
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT)
def test_no_drafter_drafts_a_token_twice_below_one_node(
    make: Callable[[], Drafter], references: list[tuple[int, ...]], prompt: tuple[int, ...], context: tuple[int, ...]
) -> None:
    tree = started(make(), references, prompt).propose(context, 12)
    places = list(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True))
    assert len(set(places)) == len(places)


@every_drafter
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT)
def test_probabilities_lie_between_0_and_1_and_never_grow_downwards(
    make: Callable[[], Drafter], references: list[tuple[int, ...]], prompt: tuple[int, ...], context: tuple[int, ...]
) -> None:
    tree = started(make(), references, prompt).propose(context, 12)
    above = [1.0 if parent < 0 else tree.probs[parent] for parent in tree.parents.tolist()]
    assert all(0 < prob <= limit for prob, limit in zip(tree.probs.tolist(), above, strict=True))


@every_drafter
@given(before=st.tuples(REFERENCES, TOKENS, CONTEXT), now=st.tuples(REFERENCES, TOKENS, CONTEXT), reset=st.booleans())
def test_an_answer_after_another_is_drafted_as_by_a_fresh_drafter(
    make: Callable[[], Drafter],
    before: tuple[list[tuple[int, ...]], tuple[int, ...], tuple[int, ...]],
    now: tuple[list[tuple[int, ...]], tuple[int, ...], tuple[int, ...]],
    reset: bool,
) -> None:
    used = make()
    answer(used, request(*before[:2]), before[2])
    used.observe(before[2])
    if reset:
        used.reset()
    assert answer(used, request(*now[:2]), now[2]) == answer(make(), request(*now[:2]), now[2])


@every_drafter
def test_after_reset_a_drafter_knows_nothing_of_references_and_prompt(make: Callable[[], Drafter]) -> None:
    drafter = started(make(), [(1, 2, 3, 4)], (1, 2, 3, 4))
    drafter.reset()
    assert len(drafter.propose((1, 2), 8)) == 0


@every_drafter
def test_without_references_and_prompt_a_first_token_gets_no_draft(make: Callable[[], Drafter]) -> None:
    assert len(started(make(), []).propose((1,), 8)) == 0


@pytest.mark.parametrize("name", DRAFTERS)
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT, ends=st.sets(st.integers(1, 14)))
def test_a_draft_depends_on_the_context_only_not_on_how_it_grew(
    name: str, references: list[tuple[int, ...]], prompt: tuple[int, ...], context: tuple[int, ...], ends: set[int]
) -> None:
    grown = started(DRAFTERS[name](), references, prompt)
    for end in sorted(ends):
        grown.propose(context[:end], 8)
    fresh = started(DRAFTERS[name](), references, prompt)
    assert plain(grown.propose(context, 8)) == plain(fresh.propose(context, 8))


def test_plain_drafts_nothing_though_everything_is_known() -> None:
    assert len(started(PlainDrafter(), [(1, 2, 3)], (1, 2, 3)).propose((1, 2), 8)) == 0


# LLMA


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


# Prompt lookup


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


# N-gram trie


def test_the_trie_drafts_a_tree_with_the_most_frequent_chain_first() -> None:
    # After 1 comes 2 four times (twice followed by 3), and 7 once
    tree = started(NgramTrieDrafter(), [(1, 7), (1, 2), (1, 2, 3), (1, 2, 3), (1, 2)]).propose((1,), 8)
    assert tree.tokens.tolist() == [2, 3, 7]
    assert tree.parents.tolist() == [-1, 0, -1]
    assert tree.probs.tolist() == [4 / 5, 2 / 5, 1 / 5]
    assert tree.sources.tolist() == [1, 2, 0]


def test_the_trie_uses_the_last_prefix_length_tokens_and_drops_the_oldest_on_failure() -> None:
    drafter = started(NgramTrieDrafter(), [(1, 2, 3, 4), (9, 2, 3, 5), (3, 6)])
    assert drafter.propose((1, 2, 3), 8).tokens.tolist() == [4]
    assert drafter.propose((8, 2, 3), 8).tokens.tolist() == [4, 5]
    assert drafter.propose((8, 8, 3), 8).tokens.tolist() == [4, 5, 6]


def test_the_trie_defaults_are_the_papers_best() -> None:
    drafter = NgramTrieDrafter()
    assert (drafter.n, drafter.prefix_length) == (13, 3)
