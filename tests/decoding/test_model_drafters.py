"""Drafters that ask a draft model or learn from the target, on tiny real models: no token ever changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from decoding.causal_draft_model import CausalDraftModel
from decoding.draft_model import DraftModel
from decoding.drafter import Drafter, DraftRequest
from decoding.drafters import NEEDS_DRAFT_MODEL, Resources, make_drafter
from decoding.drafters.draft_model import DraftModelDrafter
from decoding.drafters.lookahead import LookaheadDrafter
from decoding.drafters.ouroboros import OuroborosDrafter, OuroborosSettings
from decoding.drafters.token_recycling import TokenRecyclingDrafter
from decoding.hf_target import HuggingFaceTarget
from decoding.loop import DecodeRequest
from decoding.tree import DraftTree
from indexes.errors import SettingError
from tests.decoding.scripted import RuledDraftModel
from tests.decoding.tiny import (
    ANSWER,
    ARCHITECTURES,
    CONTEXT,
    GQA,
    emitted,
    events,
    plain_answer,
    prompt_tokens,
    tiny_model,
)

SMALL = OuroborosSettings(gamma=4, phrases=6, beta=4, suffixes=2)


@functools.cache
def twin(name: str) -> CausalDraftModel:
    """A draft model that agrees with the target: the same weights, with a cache of its own."""
    return CausalDraftModel(HuggingFaceTarget(tiny_model(*ARCHITECTURES[name])))


@functools.cache
def stranger() -> CausalDraftModel:
    """A draft model with a layer less, and so of another opinion."""
    return CausalDraftModel(HuggingFaceTarget(tiny_model("llama", GQA | {"num_hidden_layers": 1})))


def request(seed: int = 0, max_nodes: int = 32) -> DecodeRequest:
    return DecodeRequest(DraftRequest(prompt_tokens(seed)), ANSWER, max_nodes=max_nodes)


MAKERS: dict[str, Callable[[DraftModel], Drafter]] = {
    "draft-model": DraftModelDrafter,
    "draft-model, as a tree": lambda model: DraftModelDrafter(model, gamma=4, width=3),
    "ouroboros": OuroborosDrafter,
    "ouroboros, no phrase drafting": lambda model: OuroborosDrafter(model, replace(SMALL, phrase_drafting=False)),
    "ouroboros, no suffixes": lambda model: OuroborosDrafter(model, replace(SMALL, suffixes=0)),
    "ouroboros, no inspiration": lambda model: OuroborosDrafter(model, replace(SMALL, inspiration=False)),
    "ouroboros, no refinement": lambda model: OuroborosDrafter(model, replace(SMALL, refinement=False)),
    "ouroboros, cold": lambda model: OuroborosDrafter(model, replace(SMALL, warm_start=False)),
    "ouroboros, no window": lambda model: OuroborosDrafter(model, replace(SMALL, window=0)),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_maker
@pytest.mark.parametrize("name", ["llama", "mistral, sliding", "gpt2"])
@pytest.mark.parametrize("max_nodes", [3, 32])
def test_with_any_draft_model_the_tokens_are_those_of_plain_decoding(
    make: Callable[[DraftModel], Drafter], name: str, max_nodes: int
) -> None:
    for model in (twin(name), stranger(), RuledDraftModel()):
        drafter = make(model)
        for seed in (0, 1):
            tokens, end = emitted(name, drafter, request(seed, max_nodes))
            assert (tokens, end.drafter_error) == (plain_answer(name, seed), None)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_draft_model_that_agrees_has_every_chain_accepted_whole(name: str) -> None:
    steps, _ = events(name, DraftModelDrafter(twin(name), gamma=4), request())
    # 1 token from the prefill, then 39 in passes of 4 drafted tokens and a bonus token; 4 are left for the last
    assert [len(step.tokens) for step in steps] == [1, 5, 5, 5, 5, 5, 5, 5, 4]


@every_maker
def test_a_draft_model_that_agrees_saves_passes(make: Callable[[DraftModel], Drafter]) -> None:
    steps, _ = events("llama", make(twin("llama")), request())
    assert sum(step.accepted for step in steps) >= ANSWER // 2
    assert sum(len(step.tokens) for step in steps) == ANSWER


@every_maker
def test_where_the_prompt_outgrows_the_draft_model_the_answer_is_plain(make: Callable[[DraftModel], Drafter]) -> None:
    model = CausalDraftModel(HuggingFaceTarget(tiny_model("llama", GQA | {"max_position_embeddings": 30})))
    tokens, end = emitted("llama", make(model), request())
    assert (tokens, end.drafter_error) == (plain_answer("llama"), None)


@every_maker
def test_the_context_limit_of_both_models_is_kept(make: Callable[[DraftModel], Drafter]) -> None:
    prompt = DraftRequest(prompt_tokens(0, CONTEXT - 10))
    plain = emitted("llama", make_drafter("plain"), DecodeRequest(prompt, ANSWER))
    assert plain[1].reason == "context"
    assert emitted("llama", make(twin("llama")), DecodeRequest(prompt, ANSWER, max_nodes=32)) == plain


# Draft models that mean harm


class Harmful(RuledDraftModel):
    """Fails in the named way."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def choices(self, text: Sequence[int], tree: DraftTree) -> list[int]:
        return self._spoilt(super().choices(text, tree))

    def next_tokens(self, text: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        tokens, probs = super().next_tokens(text, count)
        return self._spoilt(tokens), probs

    def _spoilt(self, tokens: list[int]) -> list[int]:
        if self.way == "raises":
            raise RuntimeError("no")
        if self.way == "too few":
            return tokens[:-1]
        return [{"too large": 2**40, "negative": -5}[self.way]] * len(tokens)


@every_maker
@pytest.mark.parametrize("way", ["raises", "too few", "too large", "negative"])
def test_a_draft_model_that_means_harm_changes_no_token(make: Callable[[DraftModel], Drafter], way: str) -> None:
    tokens, end = emitted("llama", make(Harmful(way)), request())
    assert tokens == plain_answer("llama")
    assert (end.drafter_error is not None) == (way in ("raises", "too few"))


@every_maker
def test_a_draft_model_with_more_ids_than_the_target_changes_no_token(make: Callable[[DraftModel], Drafter]) -> None:
    large = CausalDraftModel(HuggingFaceTarget(tiny_model("llama", GQA | {"vocab_size": 300})))
    assert emitted("llama", make(large), request())[0] == plain_answer("llama")


@every_maker
def test_a_draft_model_with_fewer_ids_than_the_target_changes_no_token(make: Callable[[DraftModel], Drafter]) -> None:
    small = CausalDraftModel(HuggingFaceTarget(tiny_model("llama", GQA | {"vocab_size": 40})))
    tokens, end = emitted("llama", make(small), request())
    assert tokens == plain_answer("llama")
    assert "outside the draft model's vocabulary of 40" in (end.drafter_error or "")


# Without a draft model


@pytest.mark.parametrize("name", sorted(NEEDS_DRAFT_MODEL))
def test_without_a_draft_model_the_setting_to_give_is_named(name: str) -> None:
    with pytest.raises(SettingError, match=f"{name!r} needs a draft model; .*--draft-model ID"):
        make_drafter(name, Resources())


LEARNERS: dict[str, Callable[[], Drafter]] = {
    "token-recycling": TokenRecyclingDrafter,
    "lookahead": LookaheadDrafter,
    "lookahead, small": lambda: LookaheadDrafter(columns=3, n=3, candidates=2),
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("max_nodes", [3, 80])
def test_what_is_learned_from_the_target_changes_no_token(
    make: Callable[[], Drafter], name: str, max_nodes: int
) -> None:
    drafter = make()
    for seed in (0, 1, 0):
        tokens, end = emitted(name, drafter, request(seed, max_nodes))
        assert (tokens, end.drafter_error) == (plain_answer(name, seed), None)


def test_token_recycling_knows_an_answer_that_it_has_seen() -> None:
    drafter = TokenRecyclingDrafter()
    first = events("llama", drafter, request(max_nodes=80))[0]
    again = events("llama", drafter, request(max_nodes=80))[0]
    assert len(again) < len(first) <= ANSWER
