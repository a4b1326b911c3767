"""Which target computes a folder's model, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from decoding.targets import load_target, takes_kernels
from indexes.errors import ModelError, SettingError, UnsupportedModelError
from tests.decoding.tiny import ARCHITECTURES, GQA, WIDE, prompt_tokens, tiny_model

KERNELS, PYTORCH, GENERAL = "lean, kernels for the CPU", "lean, PyTorch on cpu", "general, transformers' forward pass"


def saved(folder: Path, kind: str = "llama", config: dict[str, Any] | None = None, eos: Any = 7) -> Path:
    model = tiny_model(kind, config or WIDE).float()
    model.generation_config.eos_token_id = eos
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "config", "number_format", "choice", "expected"),
    [
        ("llama", WIDE, "float32", "auto", KERNELS),
        ("llama", WIDE, "bfloat16", "lean", KERNELS),
        ("qwen3", WIDE, "int8", "auto", KERNELS),
        ("llama", WIDE, "bfloat16", "pytorch", PYTORCH),
        ("llama", WIDE, "bfloat16", "general", GENERAL),
        ("llama", WIDE, "float16", "auto", PYTORCH),  # a format without kernels
        ("llama", GQA, "float32", "auto", PYTORCH),  # heads that fill no vector
        (*ARCHITECTURES["gemma2"], "float32", "auto", GENERAL),
    ],
)
def test_the_best_target_that_fits_is_chosen_and_says_what_it_is(
    tmp_path: Path, kind: str, config: dict[str, Any], number_format: str, choice: str, expected: str
) -> None:
    target = load_target(saved(tmp_path, kind, config), "cpu", number_format, choice)
    assert target.kind.startswith(expected)
    assert target.stop_tokens == {7}
    assert target.prefill(prompt_tokens(0)).isfinite().all()


def test_all_targets_of_a_model_say_the_same(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    logits = [load_target(folder, "cpu", "float32", choice).prefill(prompt_tokens(0)) for choice in ("lean", "pytorch")]
    expected = load_target(folder, "cpu", "float32", "general").prefill(prompt_tokens(0))
    for found in logits:
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("eos", "expected"), [([3, 4], {3, 4}), (None, set())])
def test_stop_tokens_are_the_generation_configuration_s(tmp_path: Path, eos: Any, expected: set[int]) -> None:
    assert load_target(saved(tmp_path, eos=eos), "cpu", "float32").stop_tokens == expected


@pytest.mark.parametrize(
    ("kind", "config", "number_format", "choice", "exact", "wrong"),
    [
        ("gpt2", None, "float32", "lean", False, "gpt2 is not of the Llama family"),
        ("gpt2", None, "float32", "pytorch", False, "gpt2 is not of the Llama family"),
        ("gpt2", None, "int8", "auto", False, r"int8 weights: gpt2 is not .*; choose another --target"),
        ("gpt2", None, "bfloat16", "auto", True, r"exact mode in bfloat16: gpt2 is not .* or --dtype float32"),
        ("llama", GQA, "float32", "lean", False, "head_dim that is a multiple of 32, not 8"),
        ("llama", WIDE, "float16", "lean", False, "kernels know float32, bfloat16, int8, not float16"),
        ("llama", WIDE, "int8", "general", False, "int8 weights: the target general has no such kernels"),
        ("llama", WIDE, "bfloat16", "pytorch", True, "exact mode in bfloat16: the target pytorch has no such kernels"),
    ],
)
def test_what_cannot_be_computed_as_asked_for_is_refused_with_the_reason(
    tmp_path: Path, kind: str, config: Any, number_format: str, choice: str, exact: bool, wrong: str
) -> None:
    folder = saved(tmp_path, kind, ARCHITECTURES["gpt2"][1] if config is None else config)
    with pytest.raises(UnsupportedModelError, match=wrong):
        load_target(folder, "cpu", number_format, choice, exact)


@pytest.mark.parametrize("number_format", ["float32", "bfloat16", "int8"])
def test_exact_mode_is_what_the_kernels_always_do(tmp_path: Path, number_format: str) -> None:
    assert load_target(saved(tmp_path), "cpu", number_format, exact=True).kind.startswith(KERNELS)


@pytest.mark.parametrize(
    ("number_format", "choice", "wrong"),
    [
        ("float8", "auto", r"unknown number format 'float8'; choose one of float32, bfloat16"),
        ("float32", "fast", r"unknown target 'fast'; choose one of auto, lean, pytorch, general"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(
    tmp_path: Path, number_format: str, choice: str, wrong: str
) -> None:
    with pytest.raises(SettingError, match=wrong):
        load_target(tmp_path, "cpu", number_format, choice)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no causal language model could be loaded from"):
        load_target(tmp_path / "nothing", "cpu", "float32")


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_target(tmp_path, "cpu", "float32")


def test_which_models_run_on_the_kernels_is_known_without_loading_them(tmp_path: Path) -> None:
    assert takes_kernels(saved(tmp_path / "wide"))
    assert not takes_kernels(saved(tmp_path / "narrow", config=GQA))
    assert not takes_kernels(saved(tmp_path / "other", *ARCHITECTURES["gpt2"]))
