"""What targets say that their caches take: the formula for what is used, and little more allocated."""

from __future__ import annotations

from typing import Any

import pytest

import decoding.cache
import decoding.lean.cache
import decoding.lean.cpu_target
from decoding.cache_memory import CacheMemory, TellsMemory
from decoding.hf_target import HuggingFaceTarget
from decoding.tree import chain, make_tree
from tests.decoding.tiny import WIDE, kernel_target, lean_target, prompt_tokens, tiny_model

MODEL = WIDE | {"max_position_embeddings": 2048}
NUMBERS = 2 * 2 * 2 * 32  # keys and values, layers, key heads, head width
CASES = {"general": 8, "lean": 8, "float32": 4, "bfloat16": 2, "int8": 2}  # bytes of a number
FORMATS = ("float32", "bfloat16", "int8")
GROWTHS = {"general": decoding.cache.GROWTH, "lean": decoding.lean.cache.GROWTH} | dict.fromkeys(
    FORMATS, decoding.lean.cpu_target.GROWTH
)
every_case = pytest.mark.parametrize("case", CASES)


def make_target(case: str) -> Any:
    model = tiny_model("llama", MODEL)
    if case in FORMATS:
        return kernel_target(model, case, 1)
    return {"general": HuggingFaceTarget, "lean": lean_target}[case](model)


@every_case
def test_what_is_used_is_two_times_layers_key_heads_width_and_bytes_for_each_token(case: str) -> None:
    target = make_target(case)
    assert target.cache_memory.used_bytes == 0
    for length in (5, 700):
        target.prefill(prompt_tokens(0, length))
        assert target.cache_memory.used_bytes == NUMBERS * CASES[case] * length
    target.forward(3, make_tree([1, 2, 3], [-1, -1, 1]))
    assert target.cache_memory.used_bytes == NUMBERS * CASES[case] * 700
    target.keep([1, 2])
    assert target.cache_memory.used_bytes == NUMBERS * CASES[case] * 703
    target.truncate(10)
    assert target.cache_memory.used_bytes == NUMBERS * CASES[case] * 10


@every_case
def test_however_a_cache_grew_no_more_than_a_fixed_number_of_slots_is_unused(case: str) -> None:
    target, text = make_target(case), prompt_tokens(1, 1100)
    target.prefill(text[:400])
    for start in range(400, 1100, 50):
        target.forward(text[start], chain(text[start + 1 : start + 50]))
        target.keep(range(49))
        memory = target.cache_memory
        unused = (memory.allocated_bytes - memory.used_bytes) / (NUMBERS * CASES[case])
        assert 0 <= unused <= GROWTHS[case] + 32


def test_scratch_of_the_kernels_is_that_of_scores_and_weights_in_float32_and_the_cache_s_format() -> None:
    target = make_target("bfloat16")
    assert target.cache_memory.scratch_bytes == 0
    target.prefill(prompt_tokens(0, 100))
    slots = target.cache_memory.allocated_bytes // (NUMBERS * 2)
    rows, rest = divmod(target.cache_memory.scratch_bytes, slots * (4 + 2))
    assert rest == 0
    assert 0 < rows <= 32


@every_case
def test_every_target_can_tell(case: str) -> None:
    assert isinstance(make_target(case), TellsMemory)


def test_a_cache_that_never_held_anything_takes_nothing() -> None:
    assert lean_target(tiny_model("llama", MODEL)).cache_memory == CacheMemory(0, 0)


def test_weights_count_once_and_in_their_number_format() -> None:
    model = tiny_model("llama", MODEL | {"tie_word_embeddings": True})
    numbers = sum(parameter.numel() for parameter in model.parameters())
    tables = 2 * 2048 * 32
    assert HuggingFaceTarget(model).weight_bytes == pytest.approx(8 * numbers, rel=0.01)
    assert lean_target(model).weight_bytes == 8 * (numbers + tables)
    embedded = 64 * 64  # which the kernels have twice: as it is, and packed as the head
    assert kernel_target(model, "float32").weight_bytes == 4 * (numbers + tables + embedded)
    sizes = [kernel_target(model, name).weight_bytes for name in FORMATS]
    assert sizes == sorted(sizes, reverse=True)
