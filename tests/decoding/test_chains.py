"""Chains for batches: an engine that emits what is scripted, rows that move, requests that come back, and costs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.chains.batch import BatchDrafter
from decoding.chains.chances import PRIOR, Chances, RequestChances
from decoding.chains.copying import KINDS, ROOM, copied_chain, kind_of
from decoding.chains.step_costs import PRIOR as STEP_PRIOR
from decoding.chains.step_costs import PRIOR_STEPS, StepCosts
from decoding.vllm_proposer import Proposer
from indexes.context_matches import LENGTH, MATCHES, ContextMatches, append, empty_matches

WIDTH = 512
PASSAGE = (11, 12, 13, 14, 15, 16, 17, 18, 19, 20)


class Clock:
    """Stands still unless told how long something takes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rows_of(texts: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The engine's arrays: lengths (R + 1,) and tokens (R + 1, WIDTH), with leftovers behind each text."""
    rows = np.full((len(texts) + 1, WIDTH), 7, np.int32)
    for row, text in enumerate(texts):
        rows[row, : len(text)] = text
    return np.array([*map(len, texts), 5], np.int32), rows


def step(
    drafter: BatchDrafter, texts: Sequence[Sequence[int]], emitted: Sequence[int] | None = None
) -> list[list[int]]:
    """One step: `emitted` tokens at the end of each text are new, one each if not said."""
    counts = [1] * len(texts) if emitted is None else emitted
    lengths, rows = rows_of(texts)
    return drafter.propose(
        [list(text[len(text) - count :]) for text, count in zip(texts, counts, strict=True)], lengths, rows
    )


def cheap_steps() -> StepCosts:
    """What an engine has shown in which drafts cost next to nothing."""
    costs = StepCosts()
    for number in range(20):
        costs.observe(1, drafted := number % 2 * 8, 100, 0.03 + 0.0001 * drafted)
    return costs


def drafter(most: int = 24, longest: int = WIDTH) -> BatchDrafter:
    return BatchDrafter(most, longest, cheap_steps(), Clock())


def reading(tokens: Sequence[int]) -> ContextMatches:
    text = empty_matches(len(tokens), ROOM)
    append(text, np.array(tokens, np.int32))
    return text


def by_brute_force(tokens: Sequence[int]) -> dict[int, int]:
    """Each earlier place with the text's last token, and how many tokens agree there (64 at most)."""
    found = {}
    for place in range(len(tokens) - 1):
        length = 0
        while length <= place and length < 64 and tokens[place - length] == tokens[-1 - length]:
            length += 1
        if length:
            found[place] = length
    return found


@given(st.lists(st.integers(0, 3), min_size=1, max_size=120))
@settings(deadline=None)
def test_matches_are_those_found_by_brute_force_newest_first(tokens: list[int]) -> None:
    text = reading(tokens)
    count = int(text.cursor[MATCHES])
    found = dict(zip(text.matched[:count].tolist(), text.lengths[:count].tolist(), strict=True))
    assert found == by_brute_force(tokens)
    assert list(found) == sorted(found, reverse=True)
    assert text.cursor[LENGTH] == len(tokens)


def test_matches_that_go_on_are_kept_where_a_token_has_more_places_than_fit() -> None:
    text = reading([1, 2, 3, *([9, 3] * 600), 1, 2, 3])
    assert (2, 3) in zip(text.matched.tolist(), text.lengths.tolist(), strict=True)


def test_a_chain_follows_the_longest_match_and_then_what_is_most_frequent_there() -> None:
    chances = np.full(KINDS, 0.9)
    text = reading([1, 2, 3, 4, 5, 9, 2, 3, 8, 9, 1, 2, 3])
    assert copied_chain(text, chances, 2, 0.0)[0].tolist() == [4, 5]  # 1 2 3 matches, not only 2 3
    text = reading([1, 3, 5, 2, 3, 6, 4, 3])
    assert copied_chain(text, chances, 1, 0.0)[0].tolist() == [6]  # once each: the newest
    text = reading([1, 3, 5, 2, 3, 5, 4, 3, 6, 7, 3])
    assert copied_chain(text, chances, 1, 0.0)[0].tolist() == [5]  # twice, and 6 only once


def test_what_repeats_goes_on_repeating() -> None:
    tokens, kinds, survival = copied_chain(reading([1, 2, 3, 1, 2, 3, 1]), np.full(KINDS, 0.99), 7, 0.0)
    assert tokens.tolist() == [2, 3, 1, 2, 3, 1, 2]
    assert kinds.tolist()[-1] > kinds.tolist()[0]
    assert survival.tolist() == pytest.approx(list(itertools.accumulate([0.99] * 7, lambda a, b: a * b)))


def test_a_chain_ends_where_all_of_it_is_too_unlikely() -> None:
    text = reading([*PASSAGE, 1, *PASSAGE[:3]])
    assert len(copied_chain(text, np.full(KINDS, 0.5), 24, 0.2)[0]) == 2


def test_a_text_without_matches_has_no_chain() -> None:
    assert len(copied_chain(reading([1, 2, 3]), np.full(KINDS, 0.9), 5, 0.0)[0]) == 0


def test_longer_matches_and_agreement_are_thought_likelier_at_first() -> None:
    chances = Chances().shifted(0.0)
    assert chances[kind_of(10, 3, 3)] > chances[kind_of(2, 3, 3)] > chances[kind_of(2, 1, 3)]
    assert len(PRIOR) == KINDS


def test_chances_follow_what_came_true_and_a_request_shifts_its_own() -> None:
    shared = Chances()
    one, other = RequestChances(shared), RequestChances(shared)
    kind = kind_of(1, 1, 1)
    before = float(other.now()[kind])
    for _ in range(200):
        one.now()
        one.made([5], [kind])
        one.observe([5, 6])
    assert float(other.now()[kind]) > before + 0.3
    assert float(one.now()[kind]) > float(other.now()[kind])  # the shift is this request's


def test_only_tokens_whose_predecessors_were_right_are_counted() -> None:
    shared = Chances()
    one = RequestChances(shared)
    kinds = [kind_of(1, 1, 1), kind_of(2, 1, 1), kind_of(3, 1, 1)]
    before = one.now().copy()
    one.made([5, 6, 7], kinds)
    one.observe([5, 9])
    after = shared.shifted(0.0)
    assert after[kinds[0]] > before[kinds[0]]
    assert after[kinds[1]] < before[kinds[1]]
    assert after[kinds[2]] == pytest.approx(before[kinds[2]])


def test_a_request_is_drafted_from_its_prompt() -> None:
    assert step(drafter(), [[*PASSAGE, 1, 11, 12, 13]])[0][:3] == [14, 15, 16]


def test_a_request_is_drafted_from_its_own_output() -> None:
    of = drafter()
    assert step(of, [[1, 2, 3, 40]]) == [[]]
    assert step(of, [[1, 2, 3, 40, 41, 42, 43, 40, 41]], [5])[0][:2] == [42, 43]


def test_nothing_is_drafted_for_a_prompt_that_is_not_read_to_its_end() -> None:
    of = drafter()
    assert step(of, [[*PASSAGE, 11, 12], [*PASSAGE, 1, 11, 12]], [0, 1])[0] == []
    assert len(of) == 1


def test_one_requests_words_never_draft_for_another() -> None:
    of = drafter()
    step(of, [[*PASSAGE, 1, 11, 12]])
    assert step(of, [[*PASSAGE, 1, 11, 12, 13], [1, 2, 3, 11, 12, 13]])[1] == []


def test_rows_may_change_places_between_steps() -> None:
    texts = [[*PASSAGE, 1, 11, 12], [*PASSAGE[::-1], 1, 20, 19]]
    of, alone = drafter(), [drafter(), drafter()]
    step(of, texts)
    for one, text in zip(alone, texts, strict=True):
        step(one, [text])
    longer = [[*texts[0], 13], [*texts[1], 18]]
    moved = [chain[:3] for chain in step(of, longer[::-1])]
    assert moved == [step(one, [text])[0][:3] for one, text in zip(alone[::-1], longer[::-1], strict=True)]
    assert len(of) == 2


def test_state_is_dropped_with_its_request() -> None:
    of = drafter()
    step(of, [[*PASSAGE, 1, 11], [5, 6, 7, 8], [*PASSAGE, 2, 12]])
    assert len(of) == 3
    step(of, [[5, 6, 7, 8, 9]])
    assert len(of) == 1
    step(of, [[31, 32, 33]])
    assert len(of) == 1


def test_a_request_that_was_preempted_comes_back_and_is_drafted_for_as_before() -> None:
    of, text = drafter(), [*PASSAGE, 1, 11, 12]
    step(of, [text, [5, 6, 7]])
    step(of, [[5, 6, 7, 8]])
    assert step(of, [[5, 6, 7, 8, 9], [*text, 13]])[1][:3] == [14, 15, 16]


def test_the_same_prompt_twice_in_one_batch_is_two_requests() -> None:
    of, text = drafter(), [*PASSAGE, 1, 11, 12]
    assert step(of, [text, text]) == [step(drafter(), [text, text])[0]] * 2
    assert len(of) == 2
    first, second = step(of, [[*text, 13], [*text, 40]])
    assert first[:2] == [14, 15]
    assert second == []


def test_chains_stay_within_the_limit_and_the_models_context() -> None:
    text = [*PASSAGE, *PASSAGE, 11, 12, 13, 14, 15]
    assert len(step(drafter(most=2), [text])[0]) == 2
    assert len(step(drafter(longest=len(text) + 3), [text])[0]) == 2  # a token for the next step must fit, too
    assert step(drafter(longest=len(text) + 1), [text]) == [[]]


def test_a_text_outgrows_its_space() -> None:
    of = BatchDrafter(8, 4096, cheap_steps(), Clock())
    rows = np.zeros((1, 4096), np.int32)
    rows[0] = np.arange(4096) % 1500
    for length in (10, 700, 1400, 3100):
        chains = of.propose([[int(rows[0, length - 1])]], np.array([length], np.int32), rows)
    assert chains[0][:3] == rows[0, 3100:3103].tolist()


def serve(costs: Any, texts: int, steps: int = 60) -> list[int]:
    """Draft tokens per step of requests that copy all the time, in an engine whose steps cost `costs(B, D)` seconds."""
    clock = Clock()
    of = BatchDrafter(8, WIDTH, clock=clock)
    heads = [[100 + row, *PASSAGE * 4, row] for row in range(texts)]
    drafted: list[int] = []
    running: list[list[int]] = [[*head, 11, 12] for head in heads]
    for _ in range(steps):
        lengths, rows = rows_of(running)
        chains = of.propose([text[-1:] for text in running], lengths, rows)
        drafted.append(sum(map(len, chains)))
        clock.now += costs(texts, drafted[-1])
        for text in running:
            text.append(PASSAGE[(PASSAGE.index(text[-1]) + 1) % len(PASSAGE)])
    return drafted


def test_cheap_drafts_are_long_and_dear_ones_are_not_made() -> None:
    cheap = serve(lambda requests, tokens: 0.03 + 0.0001 * tokens, 1)
    dear = serve(lambda requests, tokens: 0.03 + 0.05 * tokens, 1)
    assert sum(cheap[-20:]) >= 20 * 7
    assert sum(dear[-20:]) <= 20


def test_what_drafts_cost_is_compared_with_plain_steps_now_and_then() -> None:
    drafted = serve(lambda requests, tokens: 0.03 + 0.0001 * tokens, 1, steps=400)
    assert 3 <= drafted.count(0) <= 12


def test_a_busy_engine_leaves_less_for_each_request() -> None:
    def costs(requests: int, tokens: int) -> float:
        return 0.03 + 0.004 * max(0, requests + tokens - 20)

    assert sum(serve(costs, 1)[-20:]) >= 20 * 6
    assert sum(serve(costs, 16)[-20:]) / 16 < 20 * 3


def test_steps_that_read_prompts_teach_nothing_of_what_drafts_cost() -> None:
    clock = Clock()
    of = BatchDrafter(8, WIDTH, costs := StepCosts(), clock)
    step(of, [[*PASSAGE, 1, 11]])
    clock.now += 5.0
    step(of, [[*PASSAGE, 1, 11, 12], [9, 8, 7]], [1, 0])
    clock.now += 5.0
    step(of, [[*PASSAGE, 1, 11, 12, 13], [9, 8, 7, 6]], [1, 1])
    assert not costs.known
    clock.now += 0.03
    step(of, [[*PASSAGE, 1, 11, 12, 13, 14], [9, 8, 7, 6, 5]], [1, 1])
    assert costs.known


def test_no_drafts_are_looked_for_for_a_while_only_after_many_steps_in_which_none_paid() -> None:
    clock = Clock()
    of = BatchDrafter(8, WIDTH, cheap_steps(), clock)
    of._draft_s = 0.003  # a tenth of a step
    text, paused = list(range(100, 140)), []
    for token in range(140, 170):
        text.append(token)
        clock.now += 0.03
        step(of, [text])
        paused.append(of._pause > 0)
    assert not any(paused[:7])
    assert any(paused[7:10])


def test_step_costs_are_learned_and_a_hiccup_is_no_lesson() -> None:
    costs = StepCosts()
    for number in range(300):
        drafted = number % 9
        costs.observe(4, drafted, 4000, 0.05 + 0.002 * drafted + (0.01 if drafted else 0))
    assert costs.up_to(4, 8, 4000)[[0, 1, 8]] == pytest.approx([0.05, 0.062, 0.076], rel=0.05)
    costs.observe(4, 8, 4000, 60.0)
    costs.observe(4, 8, 4000, -1.0)
    assert costs.up_to(4, 8, 4000)[8] == pytest.approx(0.076, rel=0.1)


def test_a_first_step_that_compiled_for_seconds_is_forgotten_with_the_next() -> None:
    costs = StepCosts()
    for seconds in (0.02, 2.0, 0.02, 0.02):
        costs.observe(1, 0, 100, seconds)
    assert costs.up_to(1, 0, 100)[0] == pytest.approx(0.02, rel=0.5)
    slow_first = StepCosts()
    for seconds in (2.0, 0.02):
        slow_first.observe(1, 0, 100, seconds)
    assert slow_first.up_to(1, 0, 100)[0] == pytest.approx(0.02, rel=0.05)


def test_an_engine_that_is_slower_for_good_is_believed_after_two_steps() -> None:
    costs = StepCosts()
    for _ in range(50):
        costs.observe(1, 0, 100, 0.02)
    for _ in range(60):
        costs.observe(1, 0, 100, 0.2)
    assert costs.up_to(1, 0, 100)[0] > 0.05


@pytest.mark.parametrize("bend", [4, 8, 16, 32])
def test_costs_that_bend_are_learned_on_both_sides(bend: int) -> None:
    def seconds(requests: int, drafted: int) -> float:
        return 0.02 + 0.001 * (drafted > 0) + 0.002 * max(0, requests + drafted - bend)

    costs = StepCosts()
    for number in range(200):
        drafted = number % 25
        costs.observe(1, drafted, 100, seconds(1, drafted))
    learned = costs.up_to(1, 24, 100)
    assert learned == pytest.approx([seconds(1, drafted) for drafted in range(25)], rel=0.1)
    assert list(learned[1:]) == sorted(learned[1:])


@given(st.lists(st.tuples(st.integers(1, 16), st.integers(0, 60), st.floats(0.001, 9)), min_size=1, max_size=40))
@settings(deadline=None)
def test_what_is_learned_is_the_ridge_regressions_solution(steps: list[tuple[int, int, float]]) -> None:
    costs, taught = StepCosts(), StepCosts()
    for requests, drafted, seconds in steps:
        costs.observe(requests, drafted, 1000, seconds)
    products, sums = costs._products + np.diag(PRIOR_STEPS), costs._sums
    scale = costs._seconds / costs._expected
    taught._weights[:] = np.linalg.solve(products, sums + scale * np.multiply(PRIOR_STEPS, STEP_PRIOR))
    assert costs.up_to(4, 9, 500) == pytest.approx(taught.up_to(4, 9, 500), rel=1e-6, abs=1e-9)


def config(most: int = 24) -> Any:
    return SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=most),
        model_config=SimpleNamespace(max_model_len=WIDTH),
    )


def test_vllm_is_given_a_chain_per_row_as_soon_as_a_plain_step_was_timed() -> None:
    proposer = Proposer(config())
    proposer.load_model(object())
    text, chains = [*PASSAGE, 1, 11, 12], [[0]]
    for token in (13, 14, 15, 16):
        text.append(token)
        lengths, rows = rows_of([text, [1, 2, 3]])
        chains = proposer.propose([[token], [3]], lengths, rows, slot_mappings=None)
        time.sleep(0.01)
    first, second = chains
    assert first[:3] == [17, 18, 19]
    assert all(type(token) is int for token in first)
    assert second == []


def test_an_error_of_ours_ends_drafting_and_not_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    proposer = Proposer(config())
    lengths, rows = rows_of([[*PASSAGE, 1, 11, 12, 13]])
    broken: Any = "no array"
    assert proposer.propose([[13]], broken, rows) == [[]]
    assert "go on without drafts" in caplog.text
    assert proposer.propose([[13]], lengths, rows) == [[]]


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_whatever_the_engine_does_chains_fit(data: st.DataObject) -> None:
    """Requests come, go, wait, move, are preempted and hold any token; chains are ours to limit."""
    most, clock = data.draw(st.integers(0, 9)), Clock()
    of = BatchDrafter(most, WIDTH, cheap_steps(), clock)
    token = st.integers(0, 4) | st.sampled_from([0, 2**31 - 1, -1])
    waiting: list[list[int]] = []
    for _ in range(data.draw(st.integers(1, 8))):
        waiting += data.draw(st.lists(st.lists(token, min_size=1, max_size=30), max_size=3))
        running = [text for text in data.draw(st.permutations(waiting)) if data.draw(st.booleans())]
        emitted = [data.draw(st.lists(token, max_size=4)) for _ in running]
        for text, new in zip(running, emitted, strict=True):
            text.extend(new)
        clock.now += data.draw(st.floats(-1, 2))
        lengths, rows = rows_of(running)
        chains = of.propose(emitted, lengths, rows)
        assert [len(chain) <= (most if new else 0) for chain, new in zip(chains, emitted, strict=True)] == [
            True for _ in running
        ]
        assert len(of) == sum(map(bool, emitted))
        waiting = [text for text in waiting if len(text) < 60 and data.draw(st.booleans())]
