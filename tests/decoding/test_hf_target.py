"""The target model around Hugging Face models: its cache, and which models it refuses."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.drafter import DraftRequest
from decoding.hf_target import HuggingFaceTarget, load_hf_model
from decoding.loop import DecodeRequest, decode
from decoding.tree import DraftTree, chain, limited, make_tree
from indexes.errors import ModelError, UnsupportedModelError
from tests.decoding.hostile import OracleDrafter, oracles, trees
from tests.decoding.tiny import (
    ARCHITECTURES,
    CONTEXT,
    GQA,
    HALF,
    MIXED,
    SMALL,
    VOCABULARY,
    WINDOW,
    prompt_tokens,
    tiny_model,
    tiny_target,
)

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)
PROMPT = prompt_tokens(0)
EXACT = {"rtol": 0.0, "atol": 1e-5}  # norms, rotations and eager softmax are float32 whatever the model's format

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


def fresh(target: HuggingFaceTarget, tokens: tuple[int, ...]) -> torch.Tensor:
    return target.prefill(tokens).clone()


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
    torch.testing.assert_close(logits, expected, **EXACT)


@every_architecture
@pytest.mark.parametrize("path", [(), (0,), (0, 2), (1,), (1, 3, 4)], ids=str)
def test_after_keep_the_cache_holds_what_a_fresh_prefill_of_the_kept_text_holds(
    name: str, path: tuple[int, ...]
) -> None:
    target = tiny_target(name)
    tree = make_tree([9, 10, 11, 12, 13, 14], [-1, -1, 0, 1, 3, 4])
    target.prefill(PROMPT)
    target.forward(8, tree)
    target.keep(path)
    kept = (*PROMPT, 8, *(int(tree.tokens[node]) for node in path))
    assert target.length == len(kept)
    after = target.forward(15, chain([16, 17])).clone()
    for end in range(3):
        torch.testing.assert_close(after[end], fresh(target, kept + (15, 16, 17)[: end + 1]), **EXACT)


@every_architecture
def test_after_truncate_the_cache_holds_what_a_fresh_prefill_of_the_rest_holds(name: str) -> None:
    target = tiny_target(name)
    target.prefill(PROMPT)
    target.truncate(15)
    assert target.length == 15
    torch.testing.assert_close(target.forward(8)[0], fresh(target, (*PROMPT[:15], 8)), **EXACT)


def test_a_prefill_forgets_what_was_read_before() -> None:
    target = tiny_target("llama")
    once = fresh(target, PROMPT)
    fresh(target, prompt_tokens(5, 60))
    assert torch.equal(fresh(target, PROMPT), once)


def test_nothing_of_a_tree_stays_in_the_cache_without_keep() -> None:
    target = tiny_target("llama")
    target.prefill(PROMPT)
    once = target.forward(8, chain([9, 10])).clone()
    assert target.length == len(PROMPT)
    assert torch.equal(target.forward(8, chain([9, 10])), once)


def test_a_cache_grows_past_its_first_allocation() -> None:
    target = HuggingFaceTarget(tiny_model("llama", GQA | {"max_position_embeddings": 2048}))
    text = prompt_tokens(1, 1100)
    target.prefill(text[:500])
    for start in range(500, 1100, 100):  # past 512 and 1024 columns
        target.forward(text[start], chain(text[start + 1 : start + 100]))
        target.keep(range(99))
    assert target.length == 1100
    torch.testing.assert_close(target.forward(8)[0], fresh(target, (*text, 8)), **EXACT)


@settings(max_examples=25)
@given(
    name=st.sampled_from(["llama", "gemma3"]),
    steps=st.lists(st.tuples(trees(max_size=10, margin=0), st.integers(0, 2**16)), min_size=1, max_size=5),
)
def test_any_sequence_of_trees_and_kept_paths_leaves_the_cache_of_the_kept_text(
    name: str, steps: list[tuple[DraftTree, int]]
) -> None:
    target, text = tiny_target(name), list(PROMPT)
    target.prefill(PROMPT)
    for any_tree, choice in steps:
        tree = limited(any_tree, 10, 10, VOCABULARY)
        target.forward(8, tree)
        node = random.Random(choice).randrange(-1, len(tree))
        path: list[int] = []
        while node >= 0:
            path.insert(0, node)
            node = int(tree.parents[node])
        target.keep(path)
        text += [8, *tree.tokens[path].tolist()] if path else [8]
    torch.testing.assert_close(target.forward(9)[0], fresh(target, (*text, 9)), **EXACT)


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


@pytest.mark.parametrize(("eos", "stops"), [(None, frozenset()), (3, {3}), ([3, 5], {3, 5})])
def test_stop_tokens_are_those_of_the_generation_configuration(eos: Any, stops: set[int]) -> None:
    model = tiny_model("llama", GQA)
    model.generation_config.eos_token_id = eos
    assert HuggingFaceTarget(model).stop_tokens == stops


def test_a_folder_with_safetensors_is_loaded_ready_to_use(tmp_path: Path) -> None:
    model = tiny_model("llama", GQA)
    model.save_pretrained(tmp_path)
    target = HuggingFaceTarget(load_hf_model(tmp_path, "cpu", torch.float64))
    torch.testing.assert_close(fresh(target, PROMPT), fresh(HuggingFaceTarget(model), PROMPT), **EXACT)


def test_a_folder_without_a_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"no causal language model could be loaded from {tmp_path}"):
        load_hf_model(tmp_path, "cpu", torch.float32)


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    model = tiny_model("llama", GQA)
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"safetensors"):
        load_hf_model(tmp_path, "cpu", torch.float32)


def test_an_unsupported_model_in_a_folder_is_refused_with_its_reason(tmp_path: Path) -> None:
    tiny_model("bloom", SMALL).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match=r"bloom does not use transformers' attention interface"):
        HuggingFaceTarget(load_hf_model(tmp_path, "cpu", torch.float32))
