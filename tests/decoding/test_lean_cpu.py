"""The CPU's kernels: right in every number format, and the same bits however a token is read."""

from __future__ import annotations

import functools
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.hf_target import HuggingFaceTarget
from decoding.lean.cpu_packing import check_packable, panel_bytes
from decoding.lean.cpu_target import GROWTH, PROMPT_ROWS, CpuLeanTarget
from decoding.lean.cpu_tiles import BF16, F32, INT8, multiply, tile_rows
from decoding.lean.shape import read_shape
from decoding.tree import EMPTY, DraftTree, chain, make_tree
from indexes.errors import DraftTreeError, PromptTooLongError, SettingError, UnsupportedModelError
from tests.decoding.hostile import trees
from tests.decoding.tiny import CONTEXT, VOCABULARY, WIDE, kernel_target, prompt_tokens, tiny_model, varied_model

FORMATS = ("float32", "bfloat16", "int8")
# How far logits may lie from transformers' in float64, as a share of their size.
NEAR = {"float32": 2e-5, "bfloat16": 0.05, "int8": 0.2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", WIDE),
    "llama, tied, biases": ("llama", WIDE | {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "llama, many heads in a group": ("llama", WIDE | {"num_attention_heads": 16, "num_key_value_heads": 1}),
    "qwen2": ("qwen2", WIDE | {"num_key_value_heads": 4}),
    "qwen3": ("qwen3", WIDE | {"head_dim": 64}),
    "a vocabulary that fills no panel": ("mistral", WIDE | {"sliding_window": None, "vocab_size": 101}),
}
every_format = pytest.mark.parametrize("number_format", FORMATS)
TREE = make_tree([9, 10, 11, 12, 13, 14], [-1, -1, 0, 1, 3, 4])
PROMPT = prompt_tokens(0)


@functools.cache
def model_of(name: str) -> Any:
    return varied_model(*CASES[name])


@functools.cache
def target_of(name: str, number_format: str, threads: int = 2) -> CpuLeanTarget:
    return kernel_target(model_of(name), number_format, threads)


def read_alone(target: CpuLeanTarget, tokens: list[int]) -> list[torch.Tensor]:
    """Logits after each token, read one by one."""
    found = []
    for token in tokens:
        found.append(target.forward(token)[0].clone())
        target.keep(())
    return found


@pytest.mark.parametrize("name", CASES)
@every_format
def test_logits_are_transformers_within_the_number_format(name: str, number_format: str) -> None:
    target, other = target_of(name, number_format), HuggingFaceTarget(model_of(name))
    pairs = [(target.prefill(PROMPT)[None].clone(), other.prefill(PROMPT)[None])]
    for last, tree, path in [(5, TREE, [1, 3]), (6, EMPTY, []), (7, chain([1, 2, 3]), [0, 1])]:
        pairs.append((target.forward(last, tree).clone(), other.forward(last, tree)))
        target.keep(path)
        other.keep(path)
    for found, expected in pairs:
        assert found.shape == expected.shape
        distance = (found.double() - expected).norm(dim=-1) / expected.norm(dim=-1)
        assert float(distance.max()) < NEAR[number_format]


@every_format
@settings(max_examples=60)
@given(tree=trees(), seed=st.integers(0, 3), length=st.integers(1, 40), data=st.data())
def test_a_node_has_the_bits_that_its_token_has_when_read_alone(
    number_format: str, tree: DraftTree, seed: int, length: int, data: st.DataObject
) -> None:
    target, prompt = target_of("llama", number_format), prompt_tokens(seed, length)
    node = data.draw(st.integers(-1, len(tree) - 1))
    path = []
    while node >= 0:
        path.append(node)
        node = int(tree.parents[node])
    path.reverse()
    tokens = [3, *(int(tree.tokens[node]) % VOCABULARY for node in path)]
    drafted = make_tree((tree.tokens % VOCABULARY).tolist(), tree.parents.tolist())
    target.prefill(prompt)
    logits = target.forward(3, drafted).clone()
    target.keep(path)
    after = target.forward(8)[0].clone()
    target.prefill(prompt)
    alone = read_alone(target, tokens)
    for row, expected in zip([0, *(node + 1 for node in path)], alone, strict=True):
        assert torch.equal(logits[row], expected)
    assert torch.equal(after, target.forward(8)[0])  # what was kept of the tree is what was read alone
    if len(prompt) + len(tokens) < CONTEXT:
        assert torch.equal(target.prefill([*prompt, *tokens]), alone[-1])  # and so is a prompt


@every_format
def test_the_number_of_threads_changes_no_bit(number_format: str) -> None:
    logits = []
    for threads in (1, 2, 5):
        target = target_of("qwen2", number_format, threads)
        target.prefill(PROMPT)
        logits.append(target.forward(5, TREE).clone())
    assert torch.equal(logits[0], logits[1])
    assert torch.equal(logits[0], logits[2])


@functools.cache
def long_model() -> Any:
    return tiny_model("llama", WIDE | {"max_position_embeddings": 4 * PROMPT_ROWS})


@every_format
def test_a_prompt_of_several_passes_and_a_cache_that_grows_change_no_bit(number_format: str) -> None:
    target = kernel_target(long_model(), number_format, 2)
    prompt = list(prompt_tokens(1, PROMPT_ROWS + GROWTH + 5))
    whole = target.prefill(prompt).clone()
    target.prefill(prompt[: GROWTH - 3])
    for start in range(GROWTH - 3, len(prompt), 37):
        some = prompt[start : start + 37]
        logits = target.forward(some[0], chain(some[1:]))
        target.keep(range(len(some) - 1))
    assert target.length == len(prompt)
    assert torch.equal(logits[-1], whole)


@every_format
def test_a_rejected_draft_that_is_no_number_leaves_nothing_behind(number_format: str) -> None:
    model = tiny_model(*CASES["llama"])
    with torch.no_grad():
        model.model.embed_tokens.weight[17] = float("nan")
    target = kernel_target(model, number_format, 2)
    for length in (4, 5):  # an even and an odd one: two values share a group
        target.prefill(PROMPT[:length])
        expected = read_alone(target, [3, 4, 5])
        target.prefill(PROMPT[:length])
        assert target.forward(3, make_tree([17, 4, 17], [-1, -1, 1]))[1].isnan().all()
        target.keep(())
        assert torch.equal(read_alone(target, [4, 5])[-1], expected[-1])


@every_format
def test_logits_beyond_the_context_limit_harm_nothing(number_format: str) -> None:
    target = target_of("llama", number_format)
    target.prefill(prompt_tokens(0, CONTEXT - 1))
    alone = target.forward(3)[0].clone()
    assert torch.equal(target.forward(3, chain(list(range(20))))[0], alone)


product: Any = multiply


def test_a_product_of_any_number_of_rows_has_the_same_bits() -> None:
    rows = 3 * tile_rows() + 1
    left = np.random.default_rng(0).standard_normal((rows, 64)).astype(np.float32)
    memory = np.random.default_rng(1).standard_normal(64 * 32 + 16).astype(np.float32)
    panel = memory[-memory.ctypes.data % 64 // 4 :][: 64 * 32]
    sums = np.zeros((2, rows, 32), np.float32)
    product(F32, rows, left.ctypes.data, 256, 0, panel.ctypes.data, 128, 64, sums[0].ctypes.data, 128, 0)
    for row in range(rows):
        product(F32, 1, left[row].ctypes.data, 256, 0, panel.ctypes.data, 128, 64, sums[1, row].ctypes.data, 128, 0)
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_allclose(sums[0], left @ panel.reshape(64, 32), rtol=1e-4, atol=1e-4)


AVX2 = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+lzcnt"
ON_AN_OLDER_PROCESSOR = """
import torch
from decoding.lean.cpu_tiles import multiplies_bf16
from tests.decoding.test_lean_cpu import FORMATS, NEAR, PROMPT, TREE, HuggingFaceTarget, model_of, read_alone, target_of
assert not multiplies_bf16()
other = HuggingFaceTarget(model_of("qwen2"))
other.prefill(PROMPT)
expected = other.forward(5, TREE)
for number_format in ("bfloat16", "int8"):
    target = target_of("qwen2", number_format)
    target.prefill(PROMPT)
    found = target.forward(5, TREE).clone()
    assert float(((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max()) < NEAR[number_format]
    target.prefill(PROMPT)
    for row, alone in zip([0, 2, 4, 5, 6], read_alone(target, [5, 10, 12, 13, 14]), strict=True):
        assert torch.equal(found[row], alone)
"""


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="asks for an older x86 processor")
def test_a_processor_without_these_instructions_computes_the_same_way_and_as_exactly(tmp_path: Path) -> None:
    older = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": AVX2, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", ON_AN_OLDER_PROCESSOR]
    subprocess.run(command, cwd=Path(__file__).parents[2], env=os.environ | older, check=True)


def test_a_packed_matrix_has_the_bytes_of_its_number_format() -> None:
    assert panel_bytes(F32, 64, 96) == 64 * 96 * 4
    assert panel_bytes(BF16, 64, 96) == 64 * 96 * 2
    assert panel_bytes(INT8, 40, 96) == 64 * 96 + 64 * 8  # 40 columns fill two panels; a scale and a correction each


@pytest.mark.parametrize(("field", "value"), [("head_dim", 16), ("hidden_size", 48), ("intermediate_size", 100)])
def test_sizes_that_fill_no_vector_are_refused_by_name(field: str, value: int) -> None:
    model = tiny_model("llama", WIDE | {field: value})
    with pytest.raises(UnsupportedModelError, match=f"{field} that is a multiple of .*, not {value}"):
        check_packable(read_shape(model.config))


@pytest.mark.parametrize(("length", "cached"), [(0, 0), (5, 5), (5, -1), (CONTEXT + 1, 0)])
def test_a_prompt_that_cannot_be_read_is_refused(length: int, cached: int) -> None:
    target = target_of("llama", "float32")
    target.prefill(prompt_tokens(0))
    with pytest.raises(PromptTooLongError, match=f"the prompt has {length} tokens, {cached} of them"):
        target.prefill(prompt_tokens(0, length), cached)


def test_more_cannot_be_in_the_cache_than_was_read() -> None:
    target = target_of("llama", "float32")
    target.truncate(-5)
    assert target.length == 0
    with pytest.raises(PromptTooLongError, match="2 of them said to be in the cache of 0"):
        target.prefill([1, 2, 3], 2)


@pytest.mark.parametrize("path", [[10**7], [-7]])
def test_a_path_out_of_the_tree_is_refused(path: list[int]) -> None:
    target = target_of("llama", "float32")
    target.prefill(PROMPT)
    target.forward(3, TREE)
    with pytest.raises(DraftTreeError, match="leads out of the tree"):
        target.keep(path)


def test_an_unknown_number_format_is_refused() -> None:
    with pytest.raises(SettingError, match=r"number format 'int4' is unknown here; choose float32, bfloat16, int8"):
        kernel_target(model_of("llama"), "int4")


def test_random_prompts_of_every_length_agree_with_reading_them_token_by_token() -> None:
    target = target_of("qwen3", "bfloat16")
    for length in random.Random(0).sample(range(2, CONTEXT), 8):
        prompt = list(prompt_tokens(length, length))
        target.prefill(prompt[:1])
        assert torch.equal(read_alone(target, prompt[1:])[-1], target.prefill(prompt))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_goes_on_alone_with_the_same_bits() -> None:
    target = kernel_target(model_of("llama"), "bfloat16", 3)
    expected = target.prefill(PROMPT).clone()
    assert target._others is not None
    child = os.fork()
    if child == 0:
        waiting = target._others._work_queue.qsize()  # what the parent's threads had not yet taken
        right = torch.equal(target.prefill(PROMPT), expected)
        os._exit(0 if right and target._others._work_queue.qsize() == waiting else 1)
    assert os.waitpid(child, 0)[1] == 0
