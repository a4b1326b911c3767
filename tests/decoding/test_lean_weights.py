"""Which models the lean forward pass takes, and how their weights are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from decoding.lean.files import StoredTensors
from decoding.lean.shape import read_shape
from decoding.lean.torch_target import LeanTarget
from decoding.lean.weights import random_weights, read_weights
from indexes.errors import ModelError, UnsupportedModelError
from tests.decoding.test_lean import PROMPT, ROPE, every_case, model_of, pair
from tests.decoding.tiny import ARCHITECTURES, GQA, tiny_model


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (AutoConfig.for_model("gpt2"), "gpt2 is not of the Llama family"),
        (AutoConfig.for_model("mistral", sliding_window=12), "sliding window of 12 tokens"),
        (AutoConfig.for_model("qwen2", **ARCHITECTURES["qwen2, one layer sliding"][1]), "sliding_attention"),
        (AutoConfig.for_model("llama", **GQA, hidden_act="gelu"), "hidden_act is gelu"),
        (
            AutoConfig.for_model("llama", **GQA, rope_parameters=ROPE | {"rope_type": "dynamic", "factor": 2.0}),
            "encoded as dynamic",
        ),
        (
            AutoConfig.for_model("llama", **GQA, rope_parameters=ROPE | {"partial_rotary_factor": 0.5}),
            r"part of each head only \(0.5\)",
        ),
        (AutoConfig.for_model("llama", **GQA, quantization_config={"quant_method": "gptq"}), "quantized"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_models_are_refused_with_the_reason(config: Any, reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        read_shape(config)


def test_a_missing_tensor_is_named() -> None:
    model = tiny_model("llama", GQA)
    state = dict(model.state_dict())
    del state["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(ModelError, match=r"no tensor model\.layers\.1\.mlp\.up_proj\.weight"):
        read_weights(read_shape(model.config), state, model.config, torch.float32, "cpu")


def test_a_tensor_of_another_shape_is_named_with_both_shapes() -> None:
    model = tiny_model("llama", GQA)
    state = model.state_dict() | {"model.layers.0.self_attn.k_proj.weight": torch.zeros(32, 32)}
    with pytest.raises(ModelError, match=r"k_proj\.weight has shape \(32, 32\).*asks for \(16, 32\)"):
        read_weights(read_shape(model.config), state, model.config, torch.float32, "cpu")


@pytest.mark.parametrize("size", ["1MB", "20KB"], ids=["one file", "several files"])
def test_weights_are_read_from_a_folder_tensor_by_tensor(tmp_path: Path, size: str) -> None:
    model = model_of("qwen2, tied")
    model.save_pretrained(tmp_path, max_shard_size=size)
    shape = read_shape(model.config)
    target = LeanTarget(shape, read_weights(shape, StoredTensors(tmp_path), model.config, torch.float64, "cpu"))
    assert torch.equal(target.prefill(PROMPT), pair("qwen2, tied")[0].prefill(PROMPT))


def test_a_folder_without_safetensors_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"{tmp_path} holds no readable model\.safetensors"):
        StoredTensors(tmp_path)


def test_an_index_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../b.safetensors"}}', "utf-8")
    with pytest.raises(ModelError, match=r"names \.\./b\.safetensors, which is no file of this folder"):
        StoredTensors(tmp_path)


@every_case
def test_random_weights_make_a_model_of_the_same_shapes(name: str) -> None:
    config = model_of(name).config
    shape = read_shape(config)
    made = random_weights(shape, config, torch.float32, "cpu", seed=1)
    read = read_weights(shape, model_of(name).state_dict(), config, torch.float32, "cpu")
    assert (made.head is made.embed) == (read.head is read.embed) == shape.tied
    for ours, theirs in zip(made.layers, read.layers, strict=True):
        for field in type(ours).__slots__:
            assert getattr(getattr(ours, field), "shape", None) == getattr(getattr(theirs, field), "shape", None)
    assert bool(LeanTarget(shape, made).prefill(PROMPT).isfinite().all())
    again = random_weights(shape, config, torch.float32, "cpu", seed=1)
    assert torch.equal(again.layers[1].down, made.layers[1].down)
