"""The gpu benchmark on a tiny shape on the CPU, and what its forced decoding counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from benchmarks.gpu_replay import Forced, counted, fitting, forced
from benchmarks.gpu_run import Setting, run
from benchmarks.gpu_shapes import SHAPES, shape_config
from benchmarks.gpu_steps import plain_step_bytes
from benchmarks.listed import numbers
from benchmarks.recorded import Recorded
from decoding.drafter import DraftRequest, Observation, Reference
from decoding.drafters import make_drafter
from decoding.lean.shape import read_shape
from decoding.lean.weights import random_weights
from decoding.tree import DraftTree, chain
from indexes.errors import SettingError
from tests.benchmarks.test_simulation import Letters, written

EXAMPLE = Recorded((Reference((1, 2, 3, 4, 5, 6, 7, 8)),), (2, 3, 4, 5, 9, 7, 8))


class Scripted:
    """Proposes the same chain every time."""

    likely: ClassVar[int] = 0

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = tokens

    def start(self, request: DraftRequest) -> None:
        """Nothing to prepare."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        return chain(self.tokens)

    def observe(self, observed: Observation) -> None:
        """Learns nothing."""

    def reset(self) -> None:
        """Knows nothing."""


def test_a_replay_on_the_cpu_gives_steps_and_answers_of_every_method(tmp_path: Path) -> None:
    data = written(tmp_path / "our_one.jsonl", ["the cape of granite", "a harbour"])
    setting = Setting("tiny", "cpu", "float32", (0, 3), (8, 16), None, False)
    said: list[str] = []
    result = run(Letters(), [data], setting, said.append)
    assert [(line["context"], line["nodes"]) for line in result["steps"]] == [(8, 0), (8, 3), (16, 0), (16, 3)]
    assert all(0 < line["host_ms"] <= line["step_ms"] for line in result["steps"])
    methods = {line["method"]: line for line in result["answers"]}
    assert list(methods) == ["plain", "blend@3", "hf-generate", "hf-prompt-lookup, reckoned"]
    assert methods["plain"]["accept_length"] == methods["hf-generate"]["accept_length"] == 1.0
    assert methods["blend@3"]["accept_length"] > 1.5
    assert result["conditions"]["plain_step_share_of_copy"] > 0
    assert said[0] == "making weights"


def test_forced_steps_verify_behind_the_recorded_token_and_keep_what_agrees() -> None:
    seen: list[tuple[int, int]] = []
    kept: list[list[int]] = []
    sums = Forced()
    forced(
        Scripted([3, 4, 7]), EXAMPLE, 8, sums,
        lambda last, tree: seen.append((last, len(tree))), lambda path: kept.append(list(path)),
    )  # fmt: skip
    # 3 4 are right after 2, and 5 comes free; then nothing is, token by token; before the last token no node has room
    assert seen == [(2, 3), (5, 2), (9, 1), (7, 0)]
    assert kept == [[0, 1], [], [], []]
    assert (sums.tokens, sums.steps, sums.empty_steps, sums.nodes) == (6, 4, 1, 6)


def test_without_a_drafter_every_step_is_plain() -> None:
    sums = Forced()
    forced(None, EXAMPLE, 8, sums, lambda _, __: None, lambda _: None)
    assert (sums.tokens, sums.steps, sums.empty_steps, sums.nodes) == (6, 6, 6, 0)


def test_prompt_lookup_is_counted_without_a_target() -> None:
    sums = counted(make_drafter("prompt-lookup"), [EXAMPLE], 10)
    assert sums.tokens == 6
    assert sums.steps < 6


def test_examples_that_do_not_fit_are_left_out() -> None:
    alone = Recorded((), (1, 2))
    assert fitting([alone, EXAMPLE, EXAMPLE], 10, 32, 1) == [EXAMPLE]
    with pytest.raises(SettingError, match="fits into a context of 15 tokens"):
        fitting([EXAMPLE], 10, 15, None)


def test_ids_beyond_the_vocabulary_are_refused() -> None:
    with pytest.raises(SettingError, match="ids reach 9, the shape's reach 8"):
        fitting([EXAMPLE], 9, 32, None)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama-3.1-8b", 8.03), ("qwen2.5-7b", 7.62), ("qwen2.5-1.5b", 1.54), ("smollm2-135m", 0.1345)],
)
def test_shapes_have_the_parameters_of_their_models(name: str, billions: float) -> None:
    shape = read_shape(shape_config(name))
    layer = shape.hidden * (2 * shape.query_width + 2 * shape.kv_width + 3 * shape.intermediate + 2)
    layer += (shape.query_width + 2 * shape.kv_width) * shape.qkv_bias
    total = shape.layers * layer + shape.vocabulary * shape.hidden * (2 - shape.tied) + shape.hidden
    assert total / 1e9 == pytest.approx(billions, rel=0.005)


def test_a_plain_step_reads_all_weights_but_the_embedding_once_and_the_whole_cache() -> None:
    config = shape_config("tiny")
    shape = read_shape(config)
    weights = random_weights(shape, config, torch.bfloat16, "cpu")
    # per layer: qkv 128 x 64, out 64 x 64, gate and up 256 x 64, down 64 x 128, two norms; then the norm and the head
    numbers = 2 * (128 * 64 + 64 * 64 + 256 * 64 + 64 * 128 + 2 * 64) + 64 + 49152 * 64
    assert plain_step_bytes(shape, weights, 10) == 2 * (numbers + 2 * 2 * 32 * 10)


def test_unknown_shapes_are_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match="unknown shape 'gpt-5'; choose from " + ", ".join(SHAPES)):
        shape_config("gpt-5")


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(SettingError, match="dtype is 'int8'"):
        Setting("tiny", "cpu", "int8", (0,), (8,), None, False)
    with pytest.raises(SettingError, match="must begin with 0"):
        Setting("tiny", "cpu", "float32", (3,), (8,), None, False)
    with pytest.raises(SettingError, match="numbers with commas"):
        numbers("nodes", "0,many")


def test_exact_needs_a_gpu(tmp_path: Path) -> None:
    data = written(tmp_path / "our_one.jsonl", ["the cape"])
    with pytest.raises(SettingError, match="--exact needs a GPU"):
        run(Letters(), [data], Setting("tiny", "cpu", "float32", (0,), (8,), None, True), lambda _: None)
