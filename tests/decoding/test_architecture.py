"""Which architectures can verify draft trees, and which are refused."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.drafter import DraftRequest
from decoding.hf_target import HuggingFaceTarget, load_hf_model
from decoding.loop import DecodeRequest, decode
from decoding.tree import make_tree
from indexes.errors import UnsupportedModelError
from tests.decoding.hostile import OracleDrafter, oracles
from tests.decoding.tiny import (
    ARCHITECTURES,
    CONTEXT,
    GQA,
    HALF,
    MIXED,
    SMALL,
    VOCABULARY,
    WINDOW,
    assert_same,
    prompt_tokens,
    tiny_model,
    tiny_target,
)

PROMPT = prompt_tokens(0)

# Beyond those that the answers are compared on: a tree means the same as the texts along its paths.
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "opt": ("opt", SMALL | {"ffn_dim": 64, "word_embed_proj_dim": 32, "pad_token_id": 1}),
    "gpt_neox": ("gpt_neox", SMALL),
    "gpt_bigcode": ("gpt_bigcode", SMALL),
    "gemma": ("gemma", HALF),
    "granite": ("granite", GQA),
    "cohere2": ("cohere2", GQA | MIXED),
    "olmo2": ("olmo2", GQA),
    "olmo3": ("olmo3", GQA | MIXED),
    "starcoder2, sliding": ("starcoder2", GQA | {"sliding_window": 12}),
    "smollm3": ("smollm3", GQA),
    "deepseek, values narrower than keys": (
        "deepseek_v3",
        SMALL
        | {"num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16, "n_group": 1, "topk_group": 1}
        | {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 12, "first_k_dense_replace": 2},
    ),
    "gemma4, layers that share keys and values": (
        "gemma4_text",
        HALF
        | {"num_hidden_layers": 4, "layer_types": MIXED["layer_types"] * 2, "sliding_window": WINDOW}
        | {"num_kv_shared_layers": 2, "vocab_size_per_layer_input": VOCABULARY, "global_head_dim": 8},
    ),
}


def eager_logits(kind: str, config: dict[str, Any], tokens: tuple[int, ...]) -> torch.Tensor:
    """The logits of the unchanged model, without a cache."""
    with torch.inference_mode():
        logits: torch.Tensor = tiny_model(kind, config)(torch.tensor([tokens]), use_cache=False).logits[0]
    return logits


@pytest.mark.parametrize("name", ARCHITECTURES | MORE)
def test_a_tree_read_in_one_pass_means_the_same_as_the_texts_along_its_paths(name: str) -> None:
    kind, config = (ARCHITECTURES | MORE)[name]
    target = HuggingFaceTarget(tiny_model(kind, config))
    tree = make_tree([9, 10, 11, 12, 13], [-1, -1, 1, 0, 2])
    target.prefill(PROMPT)
    logits = target.forward(8, tree)
    texts = [(8,), (8, 9), (8, 10), (8, 10, 11), (8, 9, 12), (8, 10, 11, 13)]
    expected = torch.stack([eager_logits(kind, config, PROMPT + text)[-1] for text in texts])
    assert_same(logits, expected)


@pytest.mark.parametrize(
    ("kind", "config", "reason"),
    [
        ("gpt_oss", HALF | {"num_local_experts": 2, "num_experts_per_tok": 1}, "attention sinks"),
        ("mamba", SMALL, "layers of kind linear_attention"),
        ("jamba", GQA, "layers of kind linear_attention"),
        ("qwen3_next", HALF, "layers of kind linear_attention"),
        ("lfm2", GQA | {"layer_types": ["conv", "full_attention"]}, "layers of kind conv"),
        ("llama4_text", HALF, "layers of kind chunked_attention"),
        ("bloom", SMALL, "does not use transformers' attention interface"),
        ("mpt", SMALL, "does not use transformers' attention interface"),
        ("gptj", SMALL | {"n_head": 4, "rotary_dim": 8}, "does not use transformers' attention interface"),
        ("rwkv", SMALL, "does not use transformers' attention interface"),
        ("bert", SMALL | {"is_decoder": False, "pad_token_id": 0}, "attends to later tokens"),
    ],
)
def test_a_model_that_cannot_verify_trees_is_refused_when_made_with_the_reason(
    kind: str, config: dict[str, Any], reason: str
) -> None:
    model = tiny_model(kind, config)
    with pytest.raises(UnsupportedModelError, match=reason):
        HuggingFaceTarget(model)


def test_a_model_with_an_encoder_is_refused() -> None:
    from transformers import AutoModelForSeq2SeqLM, T5Config

    config = T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    with pytest.raises(UnsupportedModelError, match=r"t5 has an encoder; only decoder-only models are supported"):
        HuggingFaceTarget(AutoModelForSeq2SeqLM.from_config(config))


def test_a_model_that_leaves_the_positions_aside_is_refused() -> None:
    model = tiny_model("llama", GQA)
    model.register_forward_pre_hook(lambda _, __, given: ((), given | {"position_ids": None}), with_kwargs=True)
    with pytest.raises(UnsupportedModelError, match=r"llama reads a draft tree as if it were a text"):
        HuggingFaceTarget(model)


def test_a_model_that_leaves_the_mask_aside_is_refused() -> None:
    model = tiny_model("llama", GQA)
    model.register_forward_pre_hook(lambda _, __, given: ((), given | {"attention_mask": None}), with_kwargs=True)
    with pytest.raises(UnsupportedModelError, match=r"llama reads a draft tree as if it were a text"):
        HuggingFaceTarget(model)


def test_a_model_without_a_known_context_limit_is_refused() -> None:
    config = {key: value for key, value in SMALL.items() if key != "max_position_embeddings"}
    model = tiny_model("bloom", config)
    with pytest.raises(UnsupportedModelError, match=r"bloom has no max_position_embeddings"):
        HuggingFaceTarget(model)


@functools.cache
def longrope(original: int) -> HuggingFaceTarget:
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [1.0, 8.0, 64.0, 512.0],
        "original_max_position_embeddings": original,
    }
    config = GQA | {"rope_parameters": rope, "original_max_position_embeddings": original}
    return HuggingFaceTarget(tiny_model("phi3", config))


def test_the_context_limit_is_that_of_the_configuration() -> None:
    assert tiny_target("llama").context_limit == CONTEXT
    assert tiny_target("gpt2").context_limit == CONTEXT


def test_a_longrope_model_ends_where_its_rotation_would_change() -> None:
    assert longrope(32).context_limit == 32


@settings(max_examples=20)
@given(shapes=st.lists(oracles, min_size=1, max_size=4))
def test_a_longrope_model_gives_the_tokens_of_plain_decoding_up_to_its_end(shapes: list[Any]) -> None:
    target = longrope(32)
    request = DecodeRequest(DraftRequest(PROMPT), 60, max_nodes=40)
    plain = [token for event in decode(target, OracleDrafter((), shapes), request) for token in tokens_of(event)]
    drafted = [token for event in decode(target, OracleDrafter(plain, shapes), request) for token in tokens_of(event)]
    assert drafted == plain
    assert len(plain) == 12


def tokens_of(event: Any) -> tuple[int, ...]:
    return getattr(event, "tokens", ())


def test_an_unsupported_model_in_a_folder_is_refused_with_its_reason(tmp_path: Path) -> None:
    tiny_model("bloom", SMALL).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match=r"bloom does not use transformers' attention interface"):
        HuggingFaceTarget(load_hf_model(tmp_path, "cpu", torch.float32))
