"""Which target computes a folder's model, and what is refused by name."""

from __future__ import annotations

import json
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


DAMAGED = [
    {"hidden_size": "64"},
    {"num_attention_heads": 3},
    {"num_attention_heads": 0},
    {"num_key_value_heads": 0},
    {"num_hidden_layers": 0},
    {"vocab_size": -4},
    {"vocab_size": 2**40},
    {"rope_parameters": 5},
    {"rope_parameters": {"rope_type": "default", "rope_theta": None}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": float("nan")}},
    {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 0}},
    {"layer_types": 5},
    {"model_type": []},
    {"quantization_config": {"quant_method": "gptq", "bits": 4}},
]


@pytest.mark.parametrize("change", DAMAGED, ids=str)
def test_a_damaged_configuration_is_refused_and_never_ends_in_another_error(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = saved(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises((ModelError, UnsupportedModelError)):
        load_target(tmp_path, "cpu", "float32")


@pytest.mark.parametrize("content", ["null", "5", "[" * 100_000, "{", '{"model_type": "no-such"}'])
def test_a_configuration_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (saved(tmp_path) / "config.json").write_text(content)
    with pytest.raises(ModelError, match="no causal language model could be loaded from"):
        load_target(tmp_path, "cpu", "float32")


@pytest.mark.parametrize("eos", ["abc", 2.5, [None], True, {"a": 1}, [[1]]], ids=str)
def test_stop_tokens_that_are_no_ids_do_not_hide_the_configuration_s(tmp_path: Path, eos: Any) -> None:
    path = saved(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": 9}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))
    assert load_target(tmp_path, "cpu", "float32").stop_tokens == {9}


def test_a_context_of_one_token_is_refused_by_the_kernels(tmp_path: Path) -> None:
    path = saved(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_position_embeddings": 1}))
    with pytest.raises(UnsupportedModelError, match="says context_limit 1; allowed are 2 to"):
        load_target(tmp_path, "cpu", "float32", "lean")
