"""Lookahead decoding with a target that counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.drafter import Observation
from decoding.drafters.lookahead import LookaheadDrafter
from decoding.tree import EMPTY, make_tree
from indexes.errors import SettingError
from tests.decoding.drafting import started
from tests.decoding.scripted import answered, counting, observed
from tests.decoding.tiny import VOCABULARY

PROMPT = tuple(range(30))
ROUND = 20


def around(text: tuple[int, ...]) -> int:
    """Counts in a circle, so that what the window finds ahead of the text is reached."""
    return (text[-1] + 1) % ROUND


def test_candidates_come_before_the_window_and_share_no_node_twice() -> None:
    drafter = started(LookaheadDrafter(columns=2, n=3, candidates=2), [], (5,))
    drafter.pool.add((7, 8, 9))
    drafter.pool.add((7, 5, 6))
    tree = drafter.propose((7,), 50)
    # the newest candidate first; of the window, so far the chain 5 5, the first stands in that candidate already
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([5, 6, 8, 9, 5], [-1, 0, -1, 2, 0])
    assert tree.probs.tolist() == [0.5, 0.4, 0.25, 0.2, 0.01]


def test_no_more_candidates_than_g_are_tried() -> None:
    drafter = started(LookaheadDrafter(columns=1, n=3, candidates=2), [], (5,))
    for last in (1, 2, 3):
        drafter.pool.add((7, 8, last))
    assert drafter.propose((7,), 50).tokens.tolist() == [8, 3, 2, 5]  # 5 is the window's


def test_n_grams_of_the_window_are_accepted_whole_once_the_text_reaches_them() -> None:
    seen = answered(LookaheadDrafter(), PROMPT, 40, 120, around)
    assert max(len(shown.path) for shown in seen) >= 4  # N - 1
    assert sum(len(shown.path) for shown in seen) >= 40


@pytest.mark.parametrize("max_nodes", [4, 8, 16, 32, 64])
def test_with_few_nodes_a_smaller_window_still_finds_n_grams(max_nodes: int) -> None:
    seen = answered(LookaheadDrafter(), PROMPT, 80, max_nodes, around)
    assert max(len(shown.tree) for shown in seen) <= max_nodes
    assert sum(len(shown.path) for shown in seen) >= 10


def test_a_draft_cut_to_a_depth_still_teaches() -> None:
    assert sum(len(shown.path) for shown in answered(LookaheadDrafter(), PROMPT, 80, 64, around, max_depth=6)) >= 10


def test_the_pool_of_an_answer_is_not_used_in_the_next() -> None:
    drafter = LookaheadDrafter()
    first = answered(drafter, PROMPT, 10, 64)
    assert len(drafter.pool) > 0
    again = answered(drafter, PROMPT, 10, 64)
    assert [shown.tree.tokens.tolist() for shown in first] == [shown.tree.tokens.tolist() for shown in again]


def test_a_replayed_record_without_choices_teaches_nothing() -> None:
    drafter = started(LookaheadDrafter(n=2), [], PROMPT)
    tree = drafter.propose((3,), 16)
    drafter.observe(Observation(tree, (), (4,)))
    assert len(drafter.pool) == 0


def test_an_observation_of_another_tree_than_was_drafted_is_no_error() -> None:
    drafter = started(LookaheadDrafter(), [], PROMPT)
    drafter.propose((3,), 32)
    drafter.observe(observed(counting, (3,), make_tree([9, 9, 9], [-1, -1, 0])))
    drafter.observe(observed(counting, (4,), EMPTY))
    assert 0 < len(drafter.propose((3, 4, 5), 32)) <= 32


def test_more_nodes_than_before_make_a_larger_window() -> None:
    drafter = started(LookaheadDrafter(), [], PROMPT)
    assert len(drafter.propose((3,), 4)) < len(drafter.propose((3,), 64))


@given(st.lists(st.integers(0, 130), min_size=1, max_size=12))
def test_a_budget_that_changes_from_pass_to_pass_is_kept(budgets: list[int]) -> None:
    drafter = started(LookaheadDrafter(columns=6, n=4, candidates=4), [], PROMPT)
    text = [*PROMPT, 3]
    for budget in budgets:
        tree = drafter.propose(text[len(PROMPT) :], budget)
        assert len(tree) <= budget
        shown = observed(counting, text, tree)
        drafter.observe(shown)
        text += shown.tokens
    assert text == [*PROMPT, *((3 + at) % VOCABULARY for at in range(len(text) - len(PROMPT)))]


@pytest.mark.parametrize(("name", "value"), [("columns", 0), ("n", 1), ("candidates", 0)])
def test_settings_that_cannot_be_are_named(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} is {value}; it must be at least"):
        LookaheadDrafter(**{name: value})
