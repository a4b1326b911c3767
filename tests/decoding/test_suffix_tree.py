"""SuffixDecoding: what is drafted, with the numbers worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.drafter import Observation
from decoding.drafters.suffix_tree import SuffixTreeDrafter
from decoding.tree import EMPTY
from tests.decoding.drafting import CONTEXT, REFERENCES, request, started


def drafted(drafter: SuffixTreeDrafter, context: tuple[int, ...], max_nodes: int = 20) -> list[tuple[int, int, float]]:
    tree = drafter.propose(context, max_nodes)
    return list(zip(tree.tokens.tolist(), tree.parents.tolist(), tree.probs.tolist(), strict=True))


def test_a_node_s_estimate_is_its_parent_s_times_its_share_of_the_occurrences() -> None:
    drafter = SuffixTreeDrafter(alpha=9)
    started(drafter, [(1, 2, 3), (1, 2, 3), (1, 2, 4), (1, 5)])
    # after 1: 2 in three of four, then 3 in two of these three and 4 in one; 5 in one of four
    assert drafted(drafter, (1,)) == [(2, -1, 0.75), (3, 0, 0.5), (4, 0, 0.25), (5, -1, 0.25)]


def test_an_occurrence_at_the_end_of_a_text_counts_though_nothing_follows_it() -> None:
    drafter = SuffixTreeDrafter(alpha=9)
    started(drafter, [(1, 2), (3, 1)])
    assert drafted(drafter, (1,)) == [(2, -1, 0.5)]


def test_nodes_below_the_floor_are_left_out() -> None:
    drafter = SuffixTreeDrafter(alpha=9, floor=0.5)
    started(drafter, [(1, 2, 3), (1, 2, 3), (1, 2, 4), (1, 5)])
    assert drafted(drafter, (1,)) == [(2, -1, 0.75), (3, 0, 0.5)]


@pytest.mark.parametrize(
    ("alpha", "beta", "nodes"), [(1.0, 0.0, 2), (2.0, 0.0, 4), (1.5, 0.0, 3), (1.0, 3.0, 5), (0.0, 0.0, 0)]
)
def test_a_match_of_p_tokens_drafts_at_most_alpha_p_plus_beta_nodes(alpha: float, beta: float, nodes: int) -> None:
    drafter = SuffixTreeDrafter(alpha, beta)
    started(drafter, [(1, 2, 3, 4, 5, 6, 7, 8)])
    assert len(drafter.propose((1, 2), 20)) == nodes


def test_by_default_a_draft_is_no_longer_than_its_match() -> None:
    drafter = started(SuffixTreeDrafter(), [(1, 2, 3, 4, 5, 6, 7, 8, 9)])
    assert [drafter.propose(context, 20).tokens.tolist() for context in ((1,), (1, 2), (1, 2, 3))] == [
        [2], [3, 4], [4, 5, 6],
    ]  # fmt: skip


def test_the_match_length_with_the_greatest_sum_of_estimates_wins() -> None:
    texts = [(1, 2, 7, 8), (1, 2, 5, 6), (3, 2, 9, 9), (3, 2, 9, 9)]
    # p = 2 (1 2): 7, 5, then 8 and 6 at 1/2 each: four nodes of limit 4 sum to 2
    # p = 1 (2): 9 at 1/2, again 9 at 1/2: two nodes of limit 2 sum to 1
    assert drafted(started_suffix(texts), (1, 2)) == [(7, -1, 0.5), (8, 0, 0.5), (5, -1, 0.5), (6, 2, 0.5)]


def started_suffix(texts: Sequence[tuple[int, ...]]) -> SuffixTreeDrafter:
    drafter = SuffixTreeDrafter(alpha=2)
    started(drafter, texts)
    return drafter


def test_a_shorter_match_wins_where_it_is_surer() -> None:
    many = [(9, 2, 4, 4, 4)] * 9
    # p = 2 (1 2): 5 and 6 at 1/2 each, limit 2: sum 1. p = 1 (2): 4 at 9/11 with limit 1: less
    drafter = SuffixTreeDrafter(alpha=1)
    started(drafter, [(1, 2, 5), (1, 2, 6), *many])
    assert drafter.propose((1, 2), 20).tokens.tolist() == [5, 6]
    # with beta 2 the limits are 4 and 3: sum 1 again, but 4 4 4 at 9/11 each is 27/11
    drafter = SuffixTreeDrafter(alpha=1, beta=2)
    started(drafter, [(1, 2, 5), (1, 2, 6), *many])
    assert drafter.propose((1, 2), 20).tokens.tolist() == [4, 4, 4]


def test_the_words_emitted_so_far_are_copied_from_and_their_end_is_no_match_of_itself() -> None:
    drafter = SuffixTreeDrafter(alpha=9)
    started(drafter, [])
    assert drafted(drafter, (1, 2, 3)) == []
    assert drafted(drafter, (1, 2, 3, 1)) == [(2, -1, 1.0), (3, 0, 1.0), (1, 1, 1.0)]


def test_nodes_name_the_reference_that_they_come_from() -> None:
    tree = started(SuffixTreeDrafter(alpha=9), [(8,), (1, 2), (1, 3)]).propose((1,), 20)
    assert (tree.tokens.tolist(), tree.sources.tolist()) == ([2, 3], [1, 2])


# Earlier answers


def after_an_answer(remember: int) -> SuffixTreeDrafter:
    """A drafter that has written 1 2 3 4 and begins anew without references."""
    drafter = SuffixTreeDrafter(alpha=9, remember=remember)
    drafter.start(request([]))
    drafter.propose((1, 2), 4)
    drafter.observe(Observation(EMPTY, (), (3,)))
    drafter.propose((1, 2, 3), 4)
    drafter.observe(Observation(EMPTY, (), (4,)))
    drafter.start(request([]))
    return drafter


def test_earlier_answers_are_forgotten_by_default() -> None:
    assert SuffixTreeDrafter().remember == 0
    assert drafted(after_an_answer(0), (2,)) == []


def test_earlier_answers_are_searched_to_their_last_token_if_asked_for() -> None:
    drafter = after_an_answer(5)
    assert drafted(drafter, (2,)) == [(3, -1, 1.0), (4, 0, 1.0)]
    assert drafter.propose((2,), 4).sources.tolist() == [-1, -1]


def test_only_the_newest_answers_are_remembered() -> None:
    drafter = after_an_answer(1)
    drafter.propose((7, 8), 4)
    drafter.start(request([]))
    assert drafted(drafter, (2,)) == []
    assert drafted(drafter, (2, 7)) == [(8, -1, 1.0)]


def test_reset_forgets_earlier_answers_and_the_one_being_written() -> None:
    drafter = after_an_answer(5)
    drafter.propose((7, 8), 4)
    drafter.reset()
    drafter.start(request([]))
    assert (drafted(drafter, (2,)), drafted(drafter, (2, 7))) == ([], [])


@given(REFERENCES, CONTEXT, st.floats(0, 4), st.floats(0, 4), st.integers(0, 9))
def test_no_draft_is_larger_than_its_limits(
    references: list[tuple[int, ...]], context: tuple[int, ...], alpha: float, beta: float, max_nodes: int
) -> None:
    tree = started(SuffixTreeDrafter(alpha, beta), references).propose(context, max_nodes)
    assert len(tree) <= min(max_nodes, alpha * len(context) + beta)
    assert all(prob >= 0.1 for prob in tree.probs.tolist())
