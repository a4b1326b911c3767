"""The lean forward pass against transformers: the same logits, for every architecture that it takes."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.drafter import DraftRequest
from decoding.drafters import make_drafter
from decoding.hf_target import HuggingFaceTarget
from decoding.lean.torch_target import LeanTarget
from decoding.loop import DecodeRequest
from decoding.tree import EMPTY, DraftTree, chain, limited, make_tree
from indexes.errors import PromptTooLongError
from tests.decoding.hostile import trees
from tests.decoding.tiny import (
    CONTEXT,
    GQA,
    HALF,
    LEAN,
    VOCABULARY,
    emitted,
    lean_target,
    plain_answer,
    prompt_tokens,
    tiny_model,
    varied_model,
)

ROPE: dict[str, Any] = {"rope_theta": 10000.0}
LLAMA3 = ROPE | {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 32}
YARN = ROPE | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24}
CASES: dict[str, tuple[str, dict[str, Any]]] = LEAN | {
    "llama, tied": ("llama", GQA | {"tie_word_embeddings": True}),
    "llama, biases": ("llama", GQA | {"attention_bias": True, "mlp_bias": True}),
    "llama, every head its own keys": ("llama", GQA | {"num_key_value_heads": 4}),
    "llama, heads wider than the model": ("llama", GQA | {"head_dim": 16}),
    "llama3 rotation": ("llama", GQA | {"rope_parameters": LLAMA3}),
    "linear rotation": ("llama", GQA | {"rope_parameters": ROPE | {"rope_type": "linear", "factor": 2.0}}),
    "yarn rotation": ("qwen2", GQA | {"rope_parameters": YARN}),
    "qwen2, tied": ("qwen2", GQA | {"tie_word_embeddings": True}),
    "qwen3, tied, biases": ("qwen3", HALF | {"tie_word_embeddings": True, "attention_bias": True}),
}
every_case = pytest.mark.parametrize("name", CASES)
PROMPT = prompt_tokens(0)
TREE = make_tree([9, 10, 11, 12, 13, 14], [-1, -1, 0, 1, 3, 4])


@functools.cache
def model_of(name: str) -> Any:
    return varied_model(*CASES[name])


@functools.cache
def pair(name: str) -> tuple[LeanTarget, HuggingFaceTarget]:
    return lean_target(model_of(name)), HuggingFaceTarget(model_of(name))


def assert_agree(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Within 1e-5 of the largest logit: transformers computes norms in float32 even in a float64 model."""
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= 1e-5 * float(expected.abs().max())


@every_case
def test_prefill_chain_and_tree_give_the_logits_of_transformers(name: str) -> None:
    lean, known = pair(name)
    assert_agree(lean.prefill(PROMPT), known.prefill(PROMPT))
    for tree in (EMPTY, chain([3, 4, 5]), TREE):
        assert_agree(lean.forward(8, tree), known.forward(8, tree))


@every_case
@pytest.mark.parametrize("path", [(), (0,), (0, 2), (1,), (1, 3, 4)], ids=str)
def test_after_keep_the_next_pass_gives_the_logits_of_transformers(name: str, path: tuple[int, ...]) -> None:
    for target in pair(name):
        target.prefill(PROMPT)
        target.forward(8, TREE)
        target.keep(path)
    lean, known = pair(name)
    assert lean.length == known.length == len(PROMPT) + 1 + len(path)
    assert_agree(lean.forward(15, chain([16, 17])), known.forward(15, chain([16, 17])))


@settings(max_examples=20)
@given(
    name=st.sampled_from(sorted(CASES)),
    steps=st.lists(st.tuples(trees(max_size=10, margin=0), st.integers(0, 2**16)), min_size=1, max_size=5),
)
def test_any_sequence_of_trees_and_kept_paths_agrees_with_transformers(
    name: str, steps: list[tuple[DraftTree, int]]
) -> None:
    lean, known = pair(name)
    lean.prefill(PROMPT)
    known.prefill(PROMPT)
    for any_tree, choice in steps:
        tree = limited(any_tree, 10, 10, VOCABULARY)
        assert_agree(lean.forward(8, tree), known.forward(8, tree))
        node = random.Random(choice).randrange(-1, len(tree))
        path: list[int] = []
        while node >= 0:
            path.insert(0, node)
            node = int(tree.parents[node])
        lean.keep(path)
        known.keep(path)


def test_after_truncate_the_rest_is_read_on() -> None:
    for target in pair("lean llama"):
        target.prefill(PROMPT)
        target.truncate(15)
        assert target.length == 15
    lean, known = pair("lean llama")
    assert_agree(lean.forward(8), known.forward(8))


def test_the_cache_grows_past_its_first_allocation() -> None:
    model = tiny_model("llama", GQA | {"max_position_embeddings": 2048})
    target, text = lean_target(model), prompt_tokens(1, 1100)
    target.prefill(text[:500])
    for start in range(500, 1100, 100):  # past 512 and 1024 columns
        target.forward(text[start], chain(text[start + 1 : start + 100]))
        target.keep(range(99))
    assert_agree(target.forward(8)[0], HuggingFaceTarget(model).prefill((*text, 8)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_stays_near_transformers(dtype: torch.dtype) -> None:
    model = tiny_model(*CASES["lean qwen2"]).to(dtype)
    lean, known = lean_target(model), HuggingFaceTarget(tiny_model(*CASES["lean qwen2"]))
    for found, exact in (
        (lean.prefill(PROMPT), known.prefill(PROMPT)),
        (lean.forward(8, TREE), known.forward(8, TREE)),
    ):
        assert found.dtype == dtype
        assert float((found.double() - exact).abs().max()) <= 30 * torch.finfo(dtype).eps * float(exact.abs().max())


def test_a_tree_may_reach_over_the_context_limit_without_harm_to_the_rows_within() -> None:
    lean, known = pair("lean llama")
    text = prompt_tokens(2, CONTEXT - 3)
    for target in (lean, known):
        target.prefill(text)
    found = lean.forward(8, chain(range(10)))  # the root stands at CONTEXT - 3, so two nodes are within
    assert_agree(found[:3], known.forward(8, chain([0, 1])))
    assert bool(found.isfinite().all())
    lean.keep([0, 1])
    assert lean.length == CONTEXT
    assert bool(lean.forward(8, chain([1, 2])).isfinite().all())


def test_an_answer_may_fill_the_context_to_its_limit() -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0, CONTEXT - 6)), max_new_tokens=40)
    tokens, end = emitted("lean llama", make_drafter("prompt-lookup"), request)
    assert (len(tokens), end.reason) == (6, "context")


def test_a_prompt_beyond_the_context_is_refused() -> None:
    with pytest.raises(PromptTooLongError, match=f"97 tokens; the model reads 1 to {CONTEXT}"):
        pair("lean llama")[0].prefill([1] * 97)


def test_a_drafted_token_that_is_no_number_costs_a_pass_and_no_token() -> None:
    answer = plain_answer("lean llama")
    model = tiny_model(*LEAN["lean llama"])
    poison = next(token for token in range(VOCABULARY) if token not in {*PROMPT, *answer})
    with torch.no_grad():
        model.model.embed_tokens.weight[poison] = float("nan")
    target = lean_target(model)
    target.prefill(PROMPT)
    assert not bool(target.forward(answer[0], chain([poison])).isfinite().all())
    once = target.forward(answer[0]).clone()
    assert int(once[0].argmax()) == answer[1]
