"""Ouroboros, part by part; the letters are those of the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.drafter import Observation
from decoding.drafters.ouroboros import OuroborosDrafter, OuroborosSettings
from decoding.tree import limited
from indexes.errors import SettingError
from tests.decoding.drafting import started
from tests.decoding.scripted import RuledDraftModel, answered, counting, observed
from tests.decoding.tiny import VOCABULARY

BARE = OuroborosSettings(gamma=3, phrases=4, beta=3, suffixes=2, window=0)


def drafting(settings: OuroborosSettings, *phrases: Sequence[int]) -> tuple[OuroborosDrafter, RuledDraftModel]:
    """A drafter with a small model that counts and these phrases in its pool, asked after prompt (1,)."""
    model = RuledDraftModel()
    drafter = OuroborosDrafter(model, settings)
    started(drafter, [], (1,))
    for phrase in phrases:
        drafter.pool.add(phrase)
    return drafter, model


# Sentence draft and longer drafts


def test_without_phrases_the_small_model_writes_token_by_token() -> None:
    drafter, model = drafting(BARE)
    assert drafter.propose((7,), 16).tokens.tolist() == [8, 9, 10]
    assert len(model.texts) == 3


def test_a_phrase_that_the_small_model_agrees_with_is_written_in_one_pass_with_one_token_more() -> None:
    drafter, model = drafting(BARE, (7, 1, 1), (7, 8, 9), (7, 8, 2))
    assert drafter.propose((7,), 16).tokens.tolist() == [8, 9, 10]
    assert len(model.texts) == 1


def test_a_sentence_draft_may_be_longer_than_gamma_by_the_rest_of_a_phrase() -> None:
    drafter, _ = drafting(replace(BARE, gamma=4), (10, 11, 12), (7, 8, 9))
    assert drafter.propose((7,), 16).tokens.tolist() == [8, 9, 10, 11, 12, 13]


def test_with_phrase_drafting_off_each_token_takes_a_pass() -> None:
    drafter, model = drafting(replace(BARE, phrase_drafting=False), (7, 8, 9))
    assert drafter.propose((7,), 16).tokens.tolist() == [8, 9, 10]
    assert len(model.texts) == 3


def test_the_k_newest_phrases_extend_the_draft_into_k_drafts() -> None:
    drafter, _ = drafting(BARE, (10, 1, 2), (10, 3, 4), (10, 3, 5))
    tree = drafter.propose((7,), 16)
    assert tree.tokens.tolist() == [8, 9, 10, 3, 5, 4]
    assert tree.parents.tolist() == [-1, 0, 1, 2, 3, 3]


def test_without_suffixes_the_sentence_draft_is_all() -> None:
    drafter, _ = drafting(replace(BARE, suffixes=0), (10, 1, 2))
    assert drafter.propose((7,), 16).tokens.tolist() == [8, 9, 10]


def test_with_few_nodes_half_are_for_the_sentence_draft() -> None:
    drafter, _ = drafting(BARE, (9, 1, 2), (9, 3, 4))  # 3 + 2 * 2 nodes would be the whole
    tree = drafter.propose((7,), 4)
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([8, 9, 3, 4], [-1, 0, 1, 2])


def test_the_small_model_s_window_fills_the_pool() -> None:
    drafter, _ = drafting(replace(BARE, window=4))
    drafter.propose((7,), 16)
    assert drafter.pool.newest(7, 9) == []  # the first pass fills the second level
    assert drafter.pool.newest(8, 9) == [(2, 3)]
    assert drafter.pool.newest(1, 9) == [(2, 3)]
    assert drafter.pool.newest(2, 9) == [(3, 4)]


def test_a_text_longer_than_the_small_model_reads_gets_no_draft() -> None:
    drafter = OuroborosDrafter(RuledDraftModel(context_limit=6), BARE)
    started(drafter, [], (1, 2, 3))
    assert [len(drafter.propose(range(5, 5 + length), 16)) for length in (1, 2, 3, 4)] == [3, 2, 1, 0]


# What the target teaches: Figure 1

LETTERS = {letter: at for at, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXY")}
ONE_WRONG = {"I": "W", "W": "K"}  # the small model, after I and W
KNOWN = {"W": "K", "X": "Q", "R": "P", "Q": "R"}  # the target: what it makes of wrong tokens


def ids(text: str) -> tuple[int, ...]:
    return tuple(LETTERS[letter] for letter in text)


def spelling(exceptions: dict[str, str]) -> Callable[[tuple[int, ...]], int]:
    """The next letter of the alphabet but for the exceptions."""
    table = {LETTERS[one]: LETTERS[other] for one, other in exceptions.items()}
    return lambda text: table.get(text[-1], (text[-1] + 1) % VOCABULARY)


def figure_1(settings: OuroborosSettings) -> OuroborosDrafter:
    """Prompt ABC, answer so far D; the pool has NRSY and NOXQ; the target has seen the draft."""
    drafter = OuroborosDrafter(RuledDraftModel(spelling(ONE_WRONG)), settings)
    started(drafter, [], ids("ABC"))
    drafter.pool.add(ids("NRSY"))
    drafter.pool.add(ids("NOXQ"))
    tree = drafter.propose(ids("D"), 64)
    assert tree.tokens.tolist() == list(ids("EFGHIWKLMN") + ids("OXQ") + ids("RSY"))
    shown = observed(spelling(KNOWN), ids("ABCD"), tree)
    assert shown.tokens == ids("EFGHIJ")
    drafter.observe(shown)
    return drafter


FIGURE_1 = OuroborosSettings(gamma=10, phrases=20, beta=4, suffixes=2, window=0)


def test_agreeing_parts_of_the_rejected_draft_become_phrases_as_in_figure_1() -> None:
    pool = figure_1(replace(FIGURE_1, refinement=False)).pool
    assert (pool.newest(LETTERS["K"], 9), pool.newest(LETTERS["L"], 9)) == ([ids("LMN")], [ids("MNO")])
    assert len(pool) == 4


def test_used_phrases_are_replaced_by_what_the_target_wrote_as_in_figure_1() -> None:
    pool = figure_1(replace(FIGURE_1, inspiration=False)).pool
    assert pool.newest(LETTERS["N"], 9) == [ids("OPQ"), ids("OPT")]
    assert len(pool) == 2


def test_with_inspiration_and_refinement_off_the_pool_stays_as_it_was() -> None:
    pool = figure_1(replace(FIGURE_1, inspiration=False, refinement=False)).pool
    assert pool.newest(LETTERS["N"], 9) == [ids("OXQ"), ids("RSY")]
    assert len(pool) == 2


def test_an_accepted_draft_inspires_nothing() -> None:
    drafter, _ = drafting(replace(BARE, gamma=6, suffixes=0))
    drafter.observe(observed(counting, (1, 7), drafter.propose((7,), 16)))
    assert len(drafter.pool) == 0


def test_a_suffix_that_was_cut_is_not_refined() -> None:
    drafter, _ = drafting(BARE, (10, 3, 4))
    tree = limited(drafter.propose((7,), 16), 4, 99, VOCABULARY)
    drafter.observe(observed(counting, (1, 7), tree))
    assert drafter.pool.newest(10, 9) == [(3, 4)]


def test_a_replayed_record_or_another_tree_changes_no_phrase() -> None:
    drafter, _ = drafting(BARE, (10, 3, 4))
    tree = drafter.propose((7,), 16)
    drafter.observe(Observation(tree, (0, 1, 2), (8, 9, 10, 11)))
    drafter.observe(observed(counting, (1, 7), tree))  # the same pass again: the draft is no longer open
    drafter.propose((7,), 16)
    drafter.observe(observed(counting, (1, 7), limited(tree, 0, 99, VOCABULARY)))
    assert drafter.pool.newest(10, 9) == [(3, 4)]


# Warm start


def test_a_warm_pool_outlives_the_answer_and_ends_with_reset() -> None:
    drafter, model = drafting(BARE, (7, 8, 9))
    started(drafter, [], (2,))
    assert len(drafter.pool) == 1
    drafter.propose((7,), 16)
    drafter.reset()
    assert (len(drafter.pool), model.texts) == (0, [])


def test_a_cold_pool_begins_each_answer_empty() -> None:
    drafter, _ = drafting(replace(BARE, warm_start=False), (7, 8, 9))
    started(drafter, [], (2,))
    assert len(drafter.pool) == 0


def test_with_a_warm_pool_the_same_answer_takes_fewer_passes_of_the_small_model() -> None:
    passes = []
    drafter = OuroborosDrafter(model := RuledDraftModel(), OuroborosSettings())
    for _ in range(2):
        model.texts.clear()
        answered(drafter, (0,), 5, 64)
        passes.append(len(model.texts))
    assert passes[1] < passes[0]


# Switches and limits


def test_the_defaults_are_those_of_the_paper_s_table_7_with_everything_on() -> None:
    assert OuroborosSettings() == OuroborosSettings(6, 18, 6, 3, None, True, True, True, True)
    assert (OuroborosSettings().columns, BARE.columns) == (18, 0)


@pytest.mark.parametrize(
    ("name", "value"), [("gamma", 0), ("phrases", 0), ("beta", 1), ("suffixes", -1), ("window", -1)]
)
def test_settings_that_cannot_be_are_named(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} is {value}; it must be at least"):
        replace(BARE, **cast(Any, {name: value}))


@given(
    st.builds(
        OuroborosSettings, gamma=st.integers(1, 5), phrases=st.integers(1, 3), beta=st.integers(2, 4),
        suffixes=st.integers(0, 3), window=st.integers(0, 3), phrase_drafting=st.booleans(),
        inspiration=st.booleans(), refinement=st.booleans(), warm_start=st.booleans(),
    ),
    st.lists(st.integers(0, 5), min_size=2, max_size=6), st.integers(0, 30), st.integers(0, 9),
)  # fmt: skip
def test_with_any_settings_a_text_of_two_rules_is_drafted_within_the_limits(
    settings: OuroborosSettings, table: list[int], max_nodes: int, max_depth: int
) -> None:
    def wandering(text: tuple[int, ...]) -> int:
        return table[(text[-1] + (text[-2] if len(text) > 1 else 0)) % len(table)]

    drafter = OuroborosDrafter(RuledDraftModel(counting), settings)
    for shown in answered(drafter, (0, 1), 12, max_nodes, wandering, max_depth):
        assert len(shown.tree) <= max_nodes
        places = list(zip(shown.tree.parents.tolist(), shown.tree.tokens.tolist(), strict=True))
        assert len(set(places)) == len(places)
