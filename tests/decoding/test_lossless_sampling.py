"""With one seed the sampled tokens are the same with and without drafting, whatever is drafted."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.drafter import Drafter, DraftRequest, Observation, Reference
from decoding.drafters.plain import PlainDrafter
from decoding.hf_target import HuggingFaceTarget
from decoding.loop import DecodeRequest, Step, decode
from decoding.sampling import Sampling
from decoding.tree import DraftTree
from tests.decoding.drafting import MAKERS
from tests.decoding.hostile import FAILURES, FailingDrafter, Oracle, OracleDrafter, TreesDrafter, oracles, trees
from tests.decoding.tiny import (
    ANSWER,
    ARCHITECTURES,
    KERNELS,
    emitted,
    events,
    plain_answer,
    prompt_tokens,
    tiny_model,
)

every_architecture = pytest.mark.parametrize("name", [*ARCHITECTURES, *KERNELS])

ALL = Sampling(temperature=1.5, top_p=0.9, top_k=30, min_p=0.02, repetition_penalty=1.2, seed=3)
SETTINGS = {
    "hot": Sampling(temperature=2.0, seed=1),
    "nucleus": Sampling(temperature=1.3, top_p=0.8, seed=2),
    "top_k": Sampling(temperature=1.0, top_k=5, seed=2**64 - 1),
    "min_p": Sampling(temperature=1.5, min_p=0.1),
    "penalty": Sampling(temperature=1.0, repetition_penalty=1.5, seed=7),
    "greedy with penalty": Sampling(repetition_penalty=1.2),
    "all": ALL,
}
every_setting = pytest.mark.parametrize("setting", SETTINGS)


@functools.cache
def sampled_answer(name: str, sampling: Sampling, seed: int = 0) -> tuple[int, ...]:
    """What sampling without drafts makes of a prompt."""
    request = DecodeRequest(DraftRequest(prompt_tokens(seed)), ANSWER, sampling=sampling)
    return emitted(name, PlainDrafter(), request)[0]


def near_request(name: str, sampling: Sampling, max_nodes: int = 16) -> DecodeRequest:
    """A prompt, and references of which one is nearly the answer and one is other text."""
    answer = sampled_answer(name, sampling)
    near = tuple((token + (at % 7 == 6)) % 64 for at, token in enumerate(answer))
    draft = DraftRequest(prompt_tokens(0), (Reference(near), Reference(prompt_tokens(100, 60))))
    return DecodeRequest(draft, ANSWER, max_nodes=max_nodes, sampling=sampling)


@every_architecture
@pytest.mark.parametrize("drafter", MAKERS)
def test_every_drafter_gives_the_sampled_tokens_of_plain_decoding(name: str, drafter: str) -> None:
    tokens, end = emitted(name, MAKERS[drafter](), near_request(name, ALL))
    assert tokens == sampled_answer(name, ALL)
    assert end.drafter_error is None


@every_setting
@pytest.mark.parametrize("drafter", MAKERS)
def test_every_drafter_does_so_with_every_setting(setting: str, drafter: str) -> None:
    sampling = SETTINGS[setting]
    assert emitted("llama", MAKERS[drafter](), near_request("llama", sampling))[0] == sampled_answer("llama", sampling)


@every_setting
def test_drafts_of_sampled_tokens_are_accepted_and_save_passes(setting: str) -> None:
    steps, _ = events("llama", MAKERS["llma"](), near_request("llama", SETTINGS[setting]))
    assert sum(step.accepted for step in steps) >= 4
    assert len(steps) == ANSWER - sum(step.accepted for step in steps)


@every_architecture
@settings(max_examples=8)
@given(
    setting=st.sampled_from(sorted(SETTINGS)),
    drafted=st.lists(trees(), max_size=6),
    max_nodes=st.sampled_from([1, 16, 40]),
)
def test_random_trees_never_change_a_sampled_token(
    name: str, setting: str, drafted: list[DraftTree], max_nodes: int
) -> None:
    sampling = SETTINGS[setting]
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, max_nodes=max_nodes, sampling=sampling)
    assert emitted(name, TreesDrafter(drafted), request)[0] == sampled_answer(name, sampling)


@every_architecture
@settings(max_examples=8)
@given(setting=st.sampled_from(sorted(SETTINGS)), shapes=st.lists(oracles, min_size=1, max_size=6))
def test_drafts_that_are_right_until_one_node_never_change_a_sampled_token(
    name: str, setting: str, shapes: list[Oracle]
) -> None:
    answer = sampled_answer(name, SETTINGS[setting])
    request = near_request(name, SETTINGS[setting], max_nodes=40)
    assert emitted(name, OracleDrafter(answer, shapes), request)[0] == answer


@pytest.mark.parametrize("way", FAILURES)
def test_a_drafter_that_fails_changes_no_sampled_token(way: str) -> None:
    answer = sampled_answer("llama", ALL)
    assert emitted("llama", FailingDrafter(answer, way), near_request("llama", ALL))[0] == answer


@pytest.mark.parametrize("drafter", MAKERS)
def test_in_float32_too_the_text_is_the_same_with_every_drafter(drafter: str) -> None:
    target = HuggingFaceTarget(tiny_model(*ARCHITECTURES["llama"]).float())

    def text(maker: Drafter, seed: int) -> list[int]:
        sampling = Sampling(temperature=1.2, top_p=0.95, repetition_penalty=1.1, seed=seed)
        request = near_request("llama", sampling)
        return [token for step in decode(target, maker, request) if isinstance(step, Step) for token in step.tokens]

    for seed in range(3):
        assert text(MAKERS[drafter](), seed) == text(PlainDrafter(), seed)


def test_another_seed_gives_another_text_and_the_same_seed_the_same() -> None:
    def text(seed: int) -> tuple[int, ...]:
        request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, sampling=Sampling(temperature=1.5, seed=seed))
        return emitted("llama", PlainDrafter(), request)[0]

    assert len({text(seed) for seed in range(8)}) == 8
    assert text(3) == text(3)


@every_architecture
def test_temperature_zero_is_greedy_whatever_the_seed_and_the_other_filters_are(name: str) -> None:
    sampling = Sampling(temperature=0.0, top_p=0.5, top_k=3, min_p=0.2, seed=99)
    assert sampled_answer(name, sampling) == plain_answer(name)


def test_a_temperature_near_zero_is_nearly_greedy() -> None:
    assert sampled_answer("llama", Sampling(temperature=0.01, seed=4)) == plain_answer("llama")


def test_observe_sees_the_sampled_tokens_on_the_path_and_the_likeliest_ones_off_it() -> None:
    sampling = SETTINGS["hot"]
    answer = sampled_answer("llama", sampling)
    seen: list[tuple[int, ...]] = []

    class Listener(OracleDrafter):
        likely = 1

        def observe(self, observed: Observation) -> None:
            assert observed.choices is not None
            assert observed.likely is not None
            rows = [0, *(node + 1 for node in observed.path)]
            assert tuple(observed.choices[row] for row in rows) == observed.tokens
            others = set(range(len(observed.choices))) - set(rows)
            assert all(observed.choices[row] == observed.likely[row, 0] for row in others)
            seen.append(observed.tokens)

    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, sampling=sampling)
    emitted("llama", Listener(answer, [Oracle(right=3, wrong=1, decoys=2, twins=True)]), request)
    assert sum(seen, ()) == answer[1:]
