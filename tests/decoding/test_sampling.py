"""Sampling's settings, the target's distribution, the noise, and a draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.sampling import GREEDY, MAX_SEED, NO_TOKEN, Sampling, draw, noise, noise_width, warped
from indexes.errors import SettingError
from tests.decoding.tiny import ARCHITECTURES, prompt_tokens, tiny_model

NONE_BEFORE = torch.empty(1, 0, dtype=torch.long)


def kept(logits: list[float], sampling: Sampling, before: tuple[int, ...] = ()) -> list[int]:
    """The tokens that can still be drawn."""
    scores = warped(torch.tensor([logits]), torch.tensor([before], dtype=torch.long), sampling)
    return torch.isfinite(scores[0]).nonzero().flatten().tolist()


# Settings


def test_the_default_is_greedy_and_changes_no_logit() -> None:
    logits = torch.tensor([[1.0, -2.0, 3.0]])
    assert Sampling() == GREEDY == Sampling(0.0, 1.0, 0, 0.0, 1.0, 0)
    assert GREEDY.greedy
    assert torch.equal(warped(logits, NONE_BEFORE, GREEDY), logits)


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("temperature", [-1.0, 0.001, 101.0, math.nan, math.inf, -math.inf, "1"], "0 (greedy), or 0.01 to 100"),
        ("top_p", [-0.1, 1.1, math.nan, math.inf, None], "0 to 1 (keeps every token)"),
        ("min_p", [-0.1, 1.1, math.nan, math.inf], "0 (keeps every token) to 1"),
        ("repetition_penalty", [0.0, -1.0, 0.001, 101.0, math.nan, math.inf], "0.01 to 100, 1 for none"),
        ("top_k", [-1, 2.5, math.nan], "whole numbers: 0 (keeps every token) or more"),
        ("seed", [-1, MAX_SEED + 1, 10**40, 0.5, math.nan], f"whole numbers from 0 to {MAX_SEED}"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name_and_what_is_allowed(
    name: str, values: list[Any], allowed: str
) -> None:
    for value in values:
        with pytest.raises(SettingError) as refused:
            Sampling(**{name: value})
        assert str(refused.value) == f"sampling's {name} is {value!r}; allowed are {allowed}"


def test_the_outermost_allowed_values_give_a_distribution_over_some_tokens() -> None:
    logits = torch.randn(1, 50, generator=torch.Generator().manual_seed(3)) * 10
    for temperature in (0.01, 1, 100):
        for top_p in (0, 1):
            for top_k in (0, 1, 2**70):
                for min_p in (0, 1):
                    for penalty in (0.01, 1, 100):
                        sampling = Sampling(temperature, top_p, top_k, min_p, penalty, MAX_SEED)
                        scores = warped(logits, torch.arange(25)[None], sampling)
                        assert scores.amax().isfinite()
                        assert not scores.isnan().any()


# The target's distribution, against transformers

SETTINGS: dict[str, Sampling] = {
    "temperature": Sampling(temperature=0.7),
    "temperature 1": Sampling(temperature=1.0),
    "top_p": Sampling(temperature=1.5, top_p=0.8),
    "top_k": Sampling(temperature=1.3, top_k=7),
    "min_p": Sampling(temperature=0.9, min_p=0.1),
    "penalty": Sampling(temperature=0.8, repetition_penalty=1.4),
    "greedy with penalty": Sampling(repetition_penalty=1.3),
    "all": Sampling(temperature=1.7, top_p=0.9, top_k=20, min_p=0.05, repetition_penalty=1.2),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_distribution_at_each_token_is_bit_for_bit_the_one_that_generate_samples_from(name: str) -> None:
    sampling = SETTINGS[name]
    model = tiny_model(*ARCHITECTURES["llama"]).float()
    prompt = torch.tensor([prompt_tokens(0)])
    chosen: dict[str, Any] = {"do_sample": False}
    if not sampling.greedy:
        chosen = {
            "do_sample": True, "temperature": float(sampling.temperature), "top_p": sampling.top_p,
            "top_k": sampling.top_k, "min_p": sampling.min_p,
        }  # fmt: skip
    torch.manual_seed(0)
    made = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, pad_token_id=0,
        repetition_penalty=sampling.repetition_penalty, return_dict_in_generate=True, output_scores=True,
        output_logits=True, **chosen,
    )  # fmt: skip
    for at, (logits, expected) in enumerate(zip(made.logits, made.scores, strict=True)):
        before = made.sequences[:, : prompt.shape[1] + at].unique()[None]
        assert torch.equal(warped(logits, before, sampling), expected)


def test_half_precision_is_widened_before_anything_is_computed_and_double_is_kept() -> None:
    logits = torch.tensor([[1.0, 3.0]])
    assert warped(logits.bfloat16(), NONE_BEFORE, Sampling(temperature=0.7)).dtype == torch.float32
    assert warped(logits.double(), NONE_BEFORE, Sampling(temperature=0.7)).dtype == torch.float64


def test_top_p_keeps_the_fewest_likeliest_tokens_that_reach_the_share() -> None:
    logits = [math.log(p) for p in (0.1, 0.5, 0.15, 0.25)]
    assert kept(logits, Sampling(temperature=1, top_p=0.7)) == [1, 3]
    assert kept(logits, Sampling(temperature=1, top_p=0.8)) == [1, 2, 3]
    assert kept(logits, Sampling(temperature=1, top_p=0)) == [1]


def test_top_k_keeps_that_many_and_min_p_those_near_the_likeliest() -> None:
    logits = [math.log(p) for p in (0.1, 0.5, 0.15, 0.25)]
    assert kept(logits, Sampling(temperature=1, top_k=2)) == [1, 3]
    assert kept(logits, Sampling(temperature=1, top_k=100)) == [0, 1, 2, 3]
    assert kept(logits, Sampling(temperature=1, min_p=0.3)) == [1, 2, 3]  # at least 0.3 * 0.5


def test_the_penalty_counts_a_token_once_however_often_it_stands_before() -> None:
    scores = warped(torch.tensor([[2.0, -2.0, 2.0]]), torch.tensor([[0, 1, 0, 1, 0]]), Sampling(repetition_penalty=2))
    assert scores.tolist() == [[1.0, -4.0, 2.0]]


# Noise


@given(st.integers(0, MAX_SEED), st.integers(0, 10**7), st.integers(1, 6), st.integers(1, 40))
def test_noise_depends_on_seed_and_position_alone(seed: int, position: int, count: int, width: int) -> None:
    together = noise(seed, position, count, width)
    assert together.shape == (count, 2, width)
    assert np.isfinite(together).all()
    for at in range(count):
        assert np.array_equal(together[at], noise(seed, position + at, 1, width)[0])


def test_no_noise_occurs_twice_among_neighbouring_seeds_and_positions() -> None:
    numbers = np.stack([noise(seed, 0, 50, 9) for seed in range(50)])
    assert len(np.unique(numbers)) == numbers.size


def test_the_noise_has_the_mean_and_variance_of_a_gumbel_distribution() -> None:
    numbers = noise(1, 0, 10_000, 50)  # 10^6 of them
    assert numbers.mean() == pytest.approx(np.euler_gamma, abs=0.005)
    assert numbers.var() == pytest.approx(math.pi**2 / 6, abs=0.01)


def test_a_vocabulary_is_covered_by_the_square_of_its_noise_width() -> None:
    assert [noise_width(size) for size in (1, 2, 4, 5, 9, 10, 49_152)] == [1, 2, 2, 3, 3, 4, 222]


# A draw


def test_the_likeliest_block_and_then_its_likeliest_token_win_with_noise_added() -> None:
    # blocks (0, 1) and (2, 3) weigh 0.7 and 0.3; noise makes the second win, and its second token
    scores = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()[None]
    quiet = torch.zeros(1, 2, 2)
    assert draw(scores, quiet).tolist() == [0]
    assert draw(scores, torch.tensor([[[0.0, 1.0], [0.0, 0.5]]])).tolist() == [2]
    assert draw(scores, torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])).tolist() == [3]


@pytest.mark.parametrize("vocabulary", [1, 2, 3, 5, 50])
def test_a_token_without_probability_is_never_drawn(vocabulary: int) -> None:
    gumbel = torch.from_numpy(noise(2, 0, 2_000, noise_width(vocabulary)))
    for allowed in ({0}, {vocabulary - 1}, {0, vocabulary - 1}):
        scores = torch.full((1, vocabulary), -math.inf, dtype=torch.float64)
        scores[0, list(allowed)] = -700.0
        assert set(draw(scores.expand(2_000, -1), gumbel).tolist()) == allowed


def test_a_row_without_a_distribution_gets_no_token_and_spoils_no_other_row() -> None:
    inf, nan = math.inf, math.nan
    scores = torch.tensor([[0.0, 9.0], [nan, 0.0], [inf, 0.0], [-inf, -inf], [nan, nan], [9.0, -inf]])
    assert draw(scores, torch.zeros(6, 2, 2)).tolist() == [1, NO_TOKEN, NO_TOKEN, NO_TOKEN, NO_TOKEN, 0]


def test_logits_moved_in_their_last_bits_hardly_ever_change_a_draw() -> None:
    # 20,000 draws of 2,500 nearly equally likely tokens; each logit moves by about 1e-5: 0.2 changes expected
    generator = torch.Generator().manual_seed(5)
    scores = torch.randn(1, 2_500, generator=generator).double() / 10
    moved = scores + 1e-5 * torch.randn(1, 2_500, generator=generator).double()
    gumbel = torch.from_numpy(noise(3, 0, 20_000, 50))
    assert (draw(scores.expand(20_000, -1), gumbel) != draw(moved.expand(20_000, -1), gumbel)).sum() <= 3
