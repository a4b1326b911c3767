"""Replaying recorded answers, worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.recorded import Recorded
from benchmarks.simulate import Oracle, Replayed, accepted_path, calibration_error, figures, replay, run
from decoding.drafter import DraftRequest, Observation, Reference
from decoding.drafters.plain import PlainDrafter
from decoding.tree import EMPTY, ROOT, DraftTree, chain, make_tree

WORDS = st.lists(st.integers(0, 3), max_size=15).map(tuple)


def recorded(references: Sequence[Sequence[int]], answer: Sequence[int]) -> Recorded:
    return Recorded(tuple(Reference(tuple(text)) for text in references), tuple(answer))


@dataclass
class Scripted:
    """Drafts what it was told to, one tree after another."""

    trees: list[DraftTree]
    likely: int = 0
    asked: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    started: list[DraftRequest] = field(default_factory=list)

    def start(self, request: DraftRequest) -> None:
        self.started.append(request)

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        self.asked.append((tuple(context), max_nodes))
        return self.trees.pop(0) if self.trees else EMPTY

    def observe(self, observed: Observation) -> None:
        self.observed.append(observed)

    def reset(self) -> None:
        pass


# The accepted path


@pytest.mark.parametrize(
    ("coming", "path"),
    [([5, 6, 8], [0, 1, 3]), ([5, 7], [0, 2]), ([9, 6], [4]), ([6], []), ([], []), ([5, 6, 8, 1], [0, 1, 3])],
)
def test_the_accepted_path_follows_what_is_coming(coming: list[int], path: list[int]) -> None:
    tree = make_tree([5, 6, 7, 8, 9], [-1, 0, 0, 1, -1])
    assert accepted_path(tree, coming) == path


def test_of_two_siblings_with_one_token_the_first_is_accepted() -> None:
    assert accepted_path(make_tree([5, 5, 6], [-1, -1, 1]), [5, 6]) == [0]


# Replay


def test_a_replay_counts_tokens_steps_and_nodes() -> None:
    # 1 is given; 2 3 are accepted and 4 is emitted; nothing is drafted: 5; 9 is wrong: 6; 7 is drafted and ends it
    drafter = Scripted([make_tree([2, 8, 3], [-1, -1, 0]), EMPTY, chain([9]), chain([7, 8])])
    sums = Replayed()
    replay(drafter, recorded([(0, 0)], (1, 2, 3, 4, 5, 6, 7)), 4, sums)
    assert (sums.tokens, sums.steps, sums.nodes, sums.reference_tokens) == (6, 4, 6, 2)
    assert drafter.asked == [((1,), 4), ((1, 2, 3, 4), 4), ((1, 2, 3, 4, 5), 4), ((1, 2, 3, 4, 5, 6), 4)]
    assert [(seen.path, seen.tokens) for seen in drafter.observed] == [
        ((0, 2), (2, 3, 4)), ((), (5,)), ((), (6,)), ((0,), (7,)),
    ]  # fmt: skip
    assert drafter.started == [DraftRequest((0, 0), (Reference((0, 0)),))]


def test_a_draft_larger_than_allowed_is_cut() -> None:
    drafter, sums = Scripted([chain([2, 3, 4, 5])]), Replayed()
    replay(drafter, recorded([], (1, 2, 3, 4, 5)), 2, sums)
    assert (sums.steps, sums.nodes) == (2, 2)
    assert len(drafter.observed[0].tree) == 2


def test_plain_decoding_emits_one_token_per_step() -> None:
    sums = run(lambda _, __: PlainDrafter(), [recorded([(1, 2)], (1, 2, 3)), recorded([], (5, 6))], 8, lambda: None)
    assert (sums.tokens, sums.steps, sums.nodes) == (3, 3, 0)


def test_a_run_makes_a_drafter_for_each_example_and_ticks() -> None:
    examples = [recorded([], (1, 2)), recorded([], (3, 4))]
    made: list[tuple[int, Recorded]] = []
    ticks: list[int] = []

    def make(index: int, example: Recorded) -> PlainDrafter:
        made.append((index, example))
        return PlainDrafter()

    run(make, examples, 8, lambda: ticks.append(len(made)))
    assert (made, ticks) == ([(0, examples[0]), (1, examples[1])], [1, 2])


# Oracles


def oracle_steps(references: Sequence[Sequence[int]], answer: Sequence[int], jump: bool, max_nodes: int = 99) -> int:
    sums = Replayed()
    replay(Oracle(tuple(answer), jump), recorded(references, answer), max_nodes, sums)
    return sums.steps


def test_the_oracle_copies_the_best_continuation_of_the_last_token() -> None:
    oracle = Oracle((1, 2, 3, 4), False)
    oracle.start(DraftRequest((), (Reference((1, 2, 9)), Reference((0, 1, 2, 3)), Reference((2, 3, 4)))))
    assert oracle.propose((1,), 99).tokens.tolist() == [2, 3]
    assert oracle.propose((1, 2), 99).tokens.tolist() == [3, 4]


def test_with_jumps_a_copy_may_begin_anywhere() -> None:
    for jump, tokens in ((False, []), (True, [2, 3])):
        oracle = Oracle((1, 2, 3), jump)
        oracle.start(DraftRequest((), (Reference((2, 3)),)))
        assert oracle.propose((1,), 99).tokens.tolist() == tokens


def test_the_oracle_copies_from_the_answer_and_over_no_end_of_a_text() -> None:
    assert oracle_steps([], (1, 2, 3, 0, 1, 2, 3), False) == 5  # 2 | 3 | 0 | 1 | 2 3
    oracle = Oracle((1, 2, 3, 4), False)
    oracle.start(DraftRequest((), (Reference((1, 2)), Reference((3, 4)))))
    assert oracle.propose((1,), 99).tokens.tolist() == [2]


def test_the_oracle_never_starts_a_copy_at_the_very_end_of_the_answer() -> None:
    oracle = Oracle((1, 1, 1), False)
    oracle.start(DraftRequest(()))
    assert oracle.propose((1,), 99).tokens.tolist() == []
    assert oracle.propose((1, 1), 99).tokens.tolist() == [1]


def test_the_oracle_drafts_whole_answers_whatever_max_nodes_is() -> None:
    oracle = Oracle(tuple(range(50)), False)
    oracle.start(DraftRequest((), (Reference(tuple(range(50))),)))
    assert len(oracle.propose((0,), 4)) == 49


@given(st.lists(WORDS, max_size=3), WORDS.filter(lambda answer: len(answer) > 1))
def test_oracles_are_ceilings(references: list[tuple[int, ...]], answer: tuple[int, ...]) -> None:
    jumping, copying = oracle_steps(references, answer, True), oracle_steps(references, answer, False)
    assert 1 <= jumping <= copying <= len(answer) - 1
    # a copier that takes the first occurrence only is never better
    first = Scripted([])

    def propose(context: Sequence[int], max_nodes: int) -> DraftTree:
        for text in references:
            if context[-1] in text:
                return chain(text[text.index(context[-1]) + 1 :][:max_nodes])
        return EMPTY

    sums = Replayed()
    first.propose = propose  # type: ignore[method-assign]
    replay(first, recorded(references, answer), 99, sums)
    assert copying <= sums.steps


# Calibration and figures


def test_nodes_are_counted_by_the_tenth_that_their_probability_lies_in() -> None:
    tree = make_tree([2, 3, 9], [-1, 0, -1], [0.95, 0.31, 0.05])
    sums = Replayed()
    replay(Scripted([tree, make_tree([5], [ROOT], [1.0])]), recorded([], (1, 2, 4, 5)), 8, sums)
    expected = np.zeros((10, 3))
    expected[9], expected[3], expected[0] = (2, 1.95, 2), (1, 0.31, 0), (1, 0.05, 0)
    assert sums.bins == pytest.approx(expected)


def test_the_calibration_error_is_the_mean_gap_weighted_by_nodes() -> None:
    bins = np.zeros((10, 3))
    bins[9], bins[2] = (10, 9.5, 7), (30, 7.5, 9)  # gaps of 2.5 and 1.5 accepted nodes
    assert calibration_error(bins) == pytest.approx(4 / 40)
    assert calibration_error(np.zeros((10, 3))) == 0


def test_figures_are_ratios_of_sums_over_all_answers() -> None:
    sums = Replayed(tokens=9, steps=4, nodes=10, reference_tokens=500, build_s=[0.001, 0.003], propose_s=[0.002, 0.001])
    line = figures("mine", "data.jsonl", 2, 8, sums)
    assert (line["tokens_per_step"], line["nodes_per_step"]) == (2.25, 2.5)
    assert (line["build_ms"], line["build_ms_per_1000_tokens"]) == (2.0, 8.0)
    assert (line["propose_ms_median"], line["propose_ms_p99"]) == (1.5, 1.0)
