"""The target model around Hugging Face models: its cache, and which models it refuses."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.hf_target import HuggingFaceTarget, load_hf_model
from decoding.lean.cpu_target import CpuLeanTarget
from decoding.lean.torch_target import LeanTarget
from decoding.tree import DraftTree, chain, limited, make_tree
from indexes.errors import ModelError
from tests.decoding.hostile import trees
from tests.decoding.tiny import (
    ARCHITECTURES,
    GQA,
    VOCABULARY,
    assert_same,
    prompt_tokens,
    tiny_model,
    tiny_target,
)

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)
PROMPT = prompt_tokens(0)


def fresh(target: HuggingFaceTarget | LeanTarget | CpuLeanTarget, tokens: tuple[int, ...]) -> torch.Tensor:
    return target.prefill(tokens).clone()


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
        assert_same(after[end], fresh(target, kept + (15, 16, 17)[: end + 1]))


@every_architecture
def test_after_truncate_the_cache_holds_what_a_fresh_prefill_of_the_rest_holds(name: str) -> None:
    target = tiny_target(name)
    target.prefill(PROMPT)
    target.truncate(15)
    assert target.length == 15
    assert_same(target.forward(8)[0], fresh(target, (*PROMPT[:15], 8)))


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
    assert_same(target.forward(8)[0], fresh(target, (*text, 8)))


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
    assert_same(target.forward(9)[0], fresh(target, (*text, 9)))


@pytest.mark.parametrize(("eos", "stops"), [(None, frozenset()), (3, {3}), ([3, 5], {3, 5})])
def test_stop_tokens_are_those_of_the_generation_configuration(eos: Any, stops: set[int]) -> None:
    model = tiny_model("llama", GQA)
    model.generation_config.eos_token_id = eos
    assert HuggingFaceTarget(model).stop_tokens == stops


def test_a_folder_with_safetensors_is_loaded_ready_to_use(tmp_path: Path) -> None:
    model = tiny_model("llama", GQA)
    model.save_pretrained(tmp_path)
    target = HuggingFaceTarget(load_hf_model(tmp_path, "cpu", torch.float64))
    assert_same(fresh(target, PROMPT), fresh(HuggingFaceTarget(model), PROMPT))


def test_a_folder_without_a_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"no causal language model could be loaded from {tmp_path}"):
        load_hf_model(tmp_path, "cpu", torch.float32)


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    model = tiny_model("llama", GQA)
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"safetensors"):
        load_hf_model(tmp_path, "cpu", torch.float32)
