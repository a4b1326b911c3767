"""How many nodes are verified: worked by hand from a given table of costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.acceptance import Acceptance
from decoding.budget import LONGEST_PAUSE, AdaptiveNodes
from decoding.drafters import make_drafter
from decoding.loop import DecodeRequest
from decoding.tree import EMPTY, DraftTree, chain, make_tree
from decoding.verify_costs import VerifyCosts, VerifyTimes
from tests.decoding.hostile import Oracle, OracleDrafter, trees
from tests.decoding.tiny import ANSWER, copied_request, events

FREE = VerifyCosts((0, 64), (1.0, 1.0))
DEAR = VerifyCosts((0, 1, 64), (1.0, 50.0, 100.0))
DRAFT_S = 0.1  # a tenth of a plain pass


def budget(costs: VerifyCosts) -> AdaptiveNodes:
    return AdaptiveNodes(VerifyTimes(costs), Acceptance(calibrated=True))


def chosen(made: AdaptiveNodes, tree: DraftTree, max_nodes: int = 64) -> list[int]:
    made.ask(max_nodes)
    return list(map(int, made.choose(tree).tokens))


def step(made: AdaptiveNodes, tree: DraftTree, tokens: Sequence[int], costs: VerifyCosts) -> tuple[int, int]:
    """One step that takes as long as `costs` says: how many nodes were asked for, and how many verified."""
    asked = made.ask(64)
    verified = len(made.choose(tree if asked else EMPTY))
    made.observe(tokens, DRAFT_S if asked else 0.0, costs.at(verified))
    return asked, verified


def test_the_number_of_nodes_has_the_most_expected_tokens_per_second() -> None:
    # (1 + sum) / time for 0 to 3 nodes: 1 / 1, 1.9 / 1.5, 2.4 / 1.6, 2.5 / 2.2 = 1, 1.27, 1.5, 1.14
    costs = VerifyCosts((0, 1, 2, 3), (1.0, 1.5, 1.6, 2.2))
    assert chosen(budget(costs), make_tree([1, 2, 3], [-1, 0, 1], [0.9, 0.5, 0.1])) == [1, 2]


def test_a_number_that_does_not_pay_is_passed_over_for_a_larger_one_that_does() -> None:
    # 1 / 1, 1.4 / 2, 1.8 / 1.5: two rows more may be faster than one
    costs = VerifyCosts((0, 1, 2), (1.0, 2.0, 1.5))
    assert chosen(budget(costs), make_tree([1, 2], [-1, -1], [0.4, 0.4])) == [1, 2]


def test_no_node_is_verified_where_none_pays() -> None:
    assert chosen(budget(DEAR), chain([1, 2, 3])) == []


def test_the_likeliest_nodes_are_chosen_in_the_order_of_the_draft() -> None:
    costs = VerifyCosts((0, 3, 4), (1.0, 1.0, 100.0))
    tree = make_tree([1, 2, 3, 4], [-1, 0, -1, 2], [0.3, 0.1, 0.6, 0.5])
    made = chosen(budget(costs), tree)
    assert made == [1, 3, 4]


def test_the_time_of_drafting_counts_against_few_nodes() -> None:
    # One node at 0.5 in 1.2 s: 1.25 against 1 without it. Two at 0.4 more in 1.7 s: 1.12. After a draft of 2 s:
    # 1.5 / 3.2 = 0.47 against 1.9 / 3.7 = 0.51, for the draft's time is spent whatever is verified.
    costs = VerifyCosts((0, 1, 2), (1.0, 1.2, 1.7))
    tree = make_tree([1, 2], [-1, -1], [0.5, 0.4])
    made = budget(costs)
    assert chosen(made, tree) == [1]
    made.observe([1], 2.0, 1.2)
    made.reset()
    made.ask(2)
    made.observe([1], 2.0, 1.0)
    assert chosen(made, tree) == [1, 2]


def test_drafting_is_taken_up_only_for_a_gain_beyond_noise() -> None:
    tree = make_tree([1], [-1], [0.5])  # 1.5 tokens
    assert chosen(budget(VerifyCosts((0, 1), (1.0, 1.48))), tree) == []  # 1.4% more
    assert chosen(budget(VerifyCosts((0, 1), (1.0, 1.40))), tree) == [1]  # 7% more


def test_another_number_of_nodes_is_taken_only_for_a_gain_beyond_noise() -> None:
    costs = VerifyCosts((0, 1, 2), (1.0, 1.2, 1.2))
    one, two = make_tree([1, 2], [-1, -1], [0.6, 0.001]), make_tree([1, 2], [-1, -1], [0.6, 0.3])
    made = budget(costs)
    assert chosen(made, make_tree([1], [-1], [0.6])) == [1]
    assert chosen(made, one) == [1]  # 0.06% more with 2
    assert chosen(made, two) == [1, 2]  # 19% more
    fresh = budget(costs)
    assert chosen(fresh, one) == [1, 2]  # without a last number it is the best one


def test_a_draft_that_was_not_verified_still_teaches() -> None:
    costs = VerifyCosts((0, 1, 64), (1.0, 1.6, 1.6))
    made = AdaptiveNodes(VerifyTimes(costs), Acceptance())
    counts = [step(made, chain([1]), [1], costs)[1] for _ in range(12)]
    assert counts[0] == 0
    assert counts[-1] == 1


def test_where_drafts_are_never_right_it_settles_at_none_but_for_ever_rarer_drafts() -> None:
    costs = VerifyCosts((0, 1, 64), (1.0, 1.3, 2.0))
    made = budget(costs)
    taken = [step(made, chain([1, 2, 3]), [9], costs) for _ in range(400)]
    late = taken[100:]
    assert all(verified == 0 for _, verified in late)
    # a draft takes a tenth of a pass, so every 20th step keeps the loss at half a per cent
    asked = [at for at, (nodes, _) in enumerate(late) if nodes]
    assert {after - before for before, after in pairwise(asked)} == {20}


def test_pauses_do_not_outlast_the_longest() -> None:
    made = budget(DEAR)
    asked = []
    for _ in range(600):
        asked.append(made.ask(8))
        made.choose(EMPTY)
        made.observe([9], 100.0 if asked[-1] else 0.0, 1.0)
    last = len(asked) - 1 - asked[::-1].index(8)
    before = last - 1 - asked[:last][::-1].index(8)
    assert last - before == LONGEST_PAUSE + 1


def test_drafting_begins_again_as_soon_as_it_pays_and_without_pauses() -> None:
    costs = VerifyCosts((0, 64), (1.0, 1.2))
    made = budget(costs)
    for _ in range(100):
        step(made, chain([1, 2, 3]), [9], costs)
    taken = [step(made, chain([1, 2, 3, 4, 5]), [1, 2, 3], costs) for _ in range(300)]
    assert all(asked and verified for asked, verified in taken[-30:])


def test_a_drafter_whose_time_costs_next_to_nothing_is_always_asked() -> None:
    made = budget(DEAR)
    for _ in range(200):
        assert made.ask(8) == 8
        made.choose(chain([1]))
        made.observe([9], 0.004, 1.0)


def test_a_new_answer_starts_without_pauses_and_without_the_last_ones_run() -> None:
    costs = VerifyCosts((0, 64), (1.0, 1.5))
    made = budget(costs)
    for _ in range(300):
        step(made, chain([1]), [9], costs)
    made.start()
    assert made.ask(8) == 8


def test_a_busy_machine_that_slows_all_passes_alike_changes_no_choice() -> None:
    costs = VerifyCosts((0, 1, 2, 3), (1.0, 1.5, 1.6, 2.2))
    tree = make_tree([1, 2, 3], [-1, 0, 1], [0.9, 0.5, 0.1])
    made = budget(costs)
    for _ in range(50):
        made.ask(3)
        count = len(made.choose(tree))
        made.observe([1, 2, 4], 0.0, 3 * costs.at(count))
    assert chosen(made, tree) == [1, 2]


hostile_probs = st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0, -1.0, math.nan, math.inf, -math.inf]), max_size=30)
costs = st.lists(st.floats(0.001, 10.0), min_size=1, max_size=12).map(
    lambda seconds: VerifyCosts(tuple(range(0, 3 * len(seconds), 3)), tuple(seconds))
)


@given(
    costs=costs, drafted=st.lists(st.tuples(trees(), hostile_probs), min_size=1, max_size=8), calibrated=st.booleans()
)
def test_whatever_a_drafter_states_the_chosen_nodes_are_a_tree_and_a_part_of_the_proposal(
    costs: VerifyCosts, drafted: list[tuple[DraftTree, list[float]]], calibrated: bool
) -> None:
    made = AdaptiveNodes(VerifyTimes(costs), Acceptance(calibrated))
    for tree, probs in drafted:
        stated = (probs + [0.5] * len(tree))[: len(tree)]
        proposed = make_tree(tree.tokens.tolist(), tree.parents.tolist(), stated)
        asked = made.ask(64)
        found = made.choose(proposed if asked else EMPTY)  # making it checks that it is a tree
        assert len(found) <= len(proposed)
        places = iter(proposed.tokens.tolist())
        assert all(token in places for token in found.tokens.tolist())  # a subsequence
        made.observe(proposed.tokens.tolist()[:2] or [1], 0.001, 1.0)


def test_in_the_decode_loop_no_step_verifies_more_than_max_nodes() -> None:
    drafter = OracleDrafter((1,) * ANSWER, [Oracle(right=8, wrong=0, decoys=2, twins=True)])
    request = DecodeRequest(copied_request("llama"), ANSWER, max_nodes=6, budget=budget(FREE))
    assert max(one.nodes for one in events("llama", drafter, request)[0]) == 6


def test_in_the_decode_loop_steps_tell_what_was_verified_not_what_was_proposed() -> None:
    request = DecodeRequest(copied_request("llama"), ANSWER, max_nodes=8, budget=budget(DEAR))
    steps, _ = events("llama", make_drafter("trie"), request)
    assert {one.nodes for one in steps} == {0}
    assert len(steps) == ANSWER


@pytest.mark.parametrize("name", ["trie", "llma"])
def test_where_verifying_costs_nothing_a_drafted_answer_saves_passes(name: str) -> None:
    made = AdaptiveNodes(VerifyTimes(FREE), Acceptance())
    steps, _ = events("llama", make_drafter(name), DecodeRequest(copied_request("llama"), ANSWER, budget=made))
    assert len(steps) <= ANSWER - 4


def test_no_more_nodes_are_asked_for_than_twice_what_has_paid_of_late() -> None:
    costs = VerifyCosts((0, 1, 2, 4, 40), (1.0, 1.0, 1.0, 9.0, 9.0))  # two nodes are free, more never pay
    budget = AdaptiveNodes(VerifyTimes(costs), Acceptance(calibrated=True))
    asked = []
    for _ in range(40):
        asked.append(budget.ask(40))
        tree = budget.choose(chain(list(range(asked[-1]))))
        budget.observe(tuple(range(len(tree) + 1)), 0.01, 1.0)
    assert (asked[0], min(asked), asked[-1]) == (16, 8, 8)


def test_where_all_nodes_pay_all_are_asked_for_soon() -> None:
    budget = AdaptiveNodes(VerifyTimes(VerifyCosts((0, 40), (1.0, 1.0))), Acceptance(calibrated=True))
    for _ in range(3):
        asked = budget.ask(40)
        tree = budget.choose(chain(list(range(asked))))
        budget.observe(tuple(range(len(tree) + 1)), 0.01, 1.0)
    assert asked == 40
