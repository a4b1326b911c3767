"""Whatever is drafted, the tokens are those of plain greedy decoding; and those are what transformers generates."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.acceptance import Acceptance
from decoding.budget import AdaptiveNodes
from decoding.drafter import DraftRequest
from decoding.drafters import make_drafter
from decoding.loop import DecodeRequest
from decoding.tree import DraftTree
from decoding.verify_costs import VerifyCosts, VerifyTimes
from tests.decoding.drafting import MAKERS, NOT_COPYING, STORES
from tests.decoding.hostile import FAILURES, FailingDrafter, Oracle, OracleDrafter, TreesDrafter, oracles, trees
from tests.decoding.tiny import (
    ANSWER,
    ARCHITECTURES,
    KERNELS,
    LEAN,
    copied_request,
    emitted,
    events,
    plain_answer,
    prompt_tokens,
    tiny_model,
)

every_architecture = pytest.mark.parametrize("name", [*ARCHITECTURES, *LEAN, *KERNELS])
SEEDS = st.integers(0, 2)
# Seconds of passes with 0, 1, 2, 4 and 40 nodes, which make drafting free, impossible, or pay for a few nodes only.
COSTS = st.one_of(
    st.sampled_from([(1.0,) * 5, (1e-9, 1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 9.0, 9.0, 9.0), (1.0, 9.0, 9.0, 1.0, 9.0)]),
    st.lists(st.floats(1e-6, 10.0), min_size=5, max_size=5).map(tuple),
)


@pytest.mark.parametrize("name", ARCHITECTURES | LEAN)
@pytest.mark.parametrize("seed", [0, 1])
def test_plain_decoding_gives_what_transformers_generates_with_eager_attention(name: str, seed: int) -> None:
    model = tiny_model(*(ARCHITECTURES | LEAN)[name])
    prompt = torch.tensor([prompt_tokens(seed)])
    made = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=ANSWER, do_sample=False, pad_token_id=0
    )
    assert model.config._attn_implementation == "eager"
    assert plain_answer(name, seed) == tuple(made[0, prompt.shape[1] :].tolist())


@every_architecture
@pytest.mark.parametrize("drafter", MAKERS)
def test_every_drafter_gives_the_tokens_of_plain_decoding(name: str, drafter: str) -> None:
    for seed in (0, 1):
        tokens, end = emitted(name, MAKERS[drafter](), DecodeRequest(copied_request(name, seed), ANSWER))
        assert tokens == plain_answer(name, seed)
        assert end.drafter_error is None


@every_architecture
@pytest.mark.parametrize("drafter", sorted(MAKERS.keys() - {"plain", "prompt-lookup", *STORES} - NOT_COPYING))
def test_drafts_from_a_reference_near_the_answer_are_accepted_and_save_passes(name: str, drafter: str) -> None:
    steps, _ = events(name, MAKERS[drafter](), DecodeRequest(copied_request(name), ANSWER))
    assert sum(step.accepted for step in steps) >= 4
    assert len(steps) == ANSWER - sum(step.accepted for step in steps)


@pytest.mark.parametrize("name", ARCHITECTURES | LEAN)
def test_prompt_lookup_has_tokens_accepted_where_the_answer_stands_in_the_prompt(name: str) -> None:
    prompt = prompt_tokens(0) + plain_answer(name)[:30]
    steps, _ = events(name, make_drafter("prompt-lookup"), DecodeRequest(DraftRequest(prompt), 40))
    again = events(name, make_drafter("plain"), DecodeRequest(DraftRequest(prompt), 40))[0]
    assert [token for step in steps for token in step.tokens] == [token for step in again for token in step.tokens]
    assert sum(step.accepted for step in steps) >= 1


@every_architecture
@settings(max_examples=12)
@given(seed=SEEDS, drafted=st.lists(trees(), max_size=6), max_nodes=st.sampled_from([1, 5, 16, 40]))
def test_random_trees_never_change_a_token(name: str, seed: int, drafted: list[DraftTree], max_nodes: int) -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(seed)), ANSWER, max_nodes=max_nodes)
    assert emitted(name, TreesDrafter(drafted), request)[0] == plain_answer(name, seed)


@every_architecture
@settings(max_examples=16)
@given(seed=SEEDS, shapes=st.lists(oracles, min_size=1, max_size=6), max_nodes=st.sampled_from([3, 16, 40]))
def test_drafts_that_are_right_until_one_node_never_change_a_token(
    name: str, seed: int, shapes: list[Oracle], max_nodes: int
) -> None:
    answer = plain_answer(name, seed)
    request = DecodeRequest(DraftRequest(prompt_tokens(seed)), ANSWER, max_nodes=max_nodes)
    assert emitted(name, OracleDrafter(answer, shapes), request)[0] == answer


@every_architecture
@settings(max_examples=16)
@given(
    seed=SEEDS,
    shapes=st.lists(oracles, min_size=1, max_size=6),
    costs=COSTS,
    calibrated=st.booleans(),
    drafter=st.sampled_from(["oracle", *MAKERS]),
)
def test_a_budget_whatever_verifying_costs_never_changes_a_token(
    name: str, seed: int, shapes: list[Oracle], costs: tuple[float, ...], calibrated: bool, drafter: str
) -> None:
    answer = plain_answer(name, seed)
    budget = AdaptiveNodes(VerifyTimes(VerifyCosts((0, 1, 2, 4, 40), costs)), Acceptance(calibrated))
    request = DecodeRequest(copied_request(name, seed), ANSWER, max_nodes=40, budget=budget)
    for _ in range(2):  # the second answer with what the first one taught
        made = OracleDrafter(answer, shapes) if drafter == "oracle" else MAKERS[drafter]()
        tokens, end = emitted(name, made, request)
        assert (tokens, end.drafter_error) == (answer, None)


@every_architecture
def test_a_right_path_between_decoys_is_accepted_though_it_lies_scattered_in_the_cache(name: str) -> None:
    answer = plain_answer(name)
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, max_nodes=20)
    steps, _ = events(name, OracleDrafter(answer, [Oracle(right=4, wrong=1, decoys=2, twins=True)]), request)
    # 1 token from the prefill, then 7 passes of 4 drafted tokens and a bonus token, then 4 left: 3 drafted and a bonus
    assert [len(step.tokens) for step in steps] == [1, 5, 5, 5, 5, 5, 5, 5, 4]
    assert tuple(token for step in steps for token in step.tokens) == answer


@pytest.mark.parametrize("way", FAILURES)
def test_a_drafter_that_fails_is_switched_off_and_changes_no_token(way: str) -> None:
    answer = plain_answer("llama")
    tokens, end = emitted("llama", FailingDrafter(answer, way), DecodeRequest(copied_request("llama"), ANSWER))
    assert tokens == answer
    assert end.drafter_error


def test_a_drafter_that_fails_is_named_with_its_error() -> None:
    answer = plain_answer("llama")
    _, end = emitted("llama", FailingDrafter(answer, "start raises"), DecodeRequest(copied_request("llama"), ANSWER))
    assert end.drafter_error == "RuntimeError: no start"


def test_a_drafter_that_failed_is_asked_no_more_in_this_answer() -> None:
    drafter = FailingDrafter(plain_answer("llama"), "parent after child", after=3)
    emitted("llama", drafter, DecodeRequest(copied_request("llama"), ANSWER))
    assert drafter.asked == 3


def test_a_drafter_that_proposes_more_than_asked_for_is_cut_to_max_nodes() -> None:
    drafter = OracleDrafter(plain_answer("llama"), [Oracle(right=8, wrong=0, decoys=2, twins=True)])
    steps, _ = events("llama", drafter, DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, max_nodes=6))
    assert max(step.nodes for step in steps) == 6


def test_with_max_nodes_zero_no_drafter_is_asked() -> None:
    drafter = OracleDrafter(plain_answer("llama"), [Oracle(4, 0, 0, False)])
    tokens, _ = emitted("llama", drafter, DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, max_nodes=0))
    assert (tokens, drafter.asked) == (plain_answer("llama"), 0)


def test_a_corrupt_answer_of_a_drafter_does_not_reach_the_next_answer() -> None:
    drafter = FailingDrafter(plain_answer("llama"), "tokens that are no integers")
    emitted("llama", drafter, DecodeRequest(copied_request("llama"), ANSWER))
    tokens, end = emitted("llama", make_drafter("trie"), DecodeRequest(copied_request("llama"), ANSWER))
    assert (tokens, end.drafter_error) == (plain_answer("llama"), None)
