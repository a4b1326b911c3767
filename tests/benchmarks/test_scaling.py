"""How time and memory grow: the fits on made-up series, real measurements of tiny sizes, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import scaling_plots
from benchmarks.__main__ import cli
from benchmarks.growth import fit_growth
from benchmarks.listed import numbers, words
from benchmarks.scaling_index import corpus, drafting_lines, index_lines
from benchmarks.scaling_run import growth_lines
from benchmarks.scaling_target import bytes_per_token, measure, memory_lines, step_lines, within_limit
from decoding.drafters import make_drafter
from decoding.lean.shape import read_shape
from indexes.errors import SettingError
from indexes.store import IndexSettings
from retrieval.chunking import chunk_document
from tests.decoding.tiny import WIDE, kernel_target, tiny_model
from tests.hash_encoder import HashEncoder

SIZES = (512, 1024, 2048, 4096, 8192)


def silent(what: str, done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_the_exponent_of_a_power_is_found_whatever_does_not_grow(exponent: float, offset: float) -> None:
    found = fit_growth(SIZES, [offset + 1e-3 * size**exponent for size in SIZES])
    assert found.exponent == pytest.approx(exponent, abs=0.02)


def test_a_straight_line_gives_its_numbers_back() -> None:
    found = fit_growth(SIZES, [11 + 0.002 * size for size in SIZES])
    assert [found.base, found.per_unit, found.misfit] == pytest.approx([11, 0.002, 0])
    assert found.slope < 0.5  # which is why the slope alone would not do


def test_a_parabola_is_far_from_every_line_and_noise_is_not() -> None:
    assert fit_growth(SIZES, [size**2 for size in SIZES]).misfit > 0.5
    noise = np.random.default_rng(0).normal(1, 0.02, len(SIZES))
    found = fit_growth(SIZES, (noise * np.array(SIZES)).tolist())
    assert found.misfit < 0.06
    assert found.exponent == pytest.approx(1, abs=0.15)


def test_two_sizes_give_a_slope_and_no_exponent() -> None:
    found = fit_growth((100, 200), (3.0, 12.0))
    assert found.exponent is None
    assert found.slope == pytest.approx(2)


def test_what_does_not_grow_has_no_exponent() -> None:
    assert fit_growth(SIZES, [5.0, 4.0, 3.0, 2.0, 1.0]).exponent is None


@pytest.mark.parametrize(("sizes", "amounts"), [([5], [1]), ([5, 5], [1, 1]), ([1, 2], [0, 1]), ([0, 2], [1, 1])])
def test_series_without_two_sizes_above_zero_are_refused(sizes: list[float], amounts: list[float]) -> None:
    with pytest.raises(SettingError, match="two sizes at least, all above zero"):
        fit_growth(sizes, amounts)


def test_the_formula_is_two_times_layers_key_heads_width_and_bytes() -> None:
    assert bytes_per_token(read_shape(tiny_model("llama", WIDE).config), 2) == 2 * 2 * 2 * 32 * 2


def test_contexts_beyond_the_model_s_are_cut_to_what_leaves_room_for_a_pass() -> None:
    assert within_limit((512, 8192, 16384, 256), (1, 32), 8192) == [256, 512, 8160]
    with pytest.raises(SettingError, match=r"rows is 32; this model's context of 40 tokens allows 20"):
        within_limit((8,), (1, 32), 40)


@pytest.fixture(scope="module")
def measured() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    model = tiny_model("llama", WIDE | {"max_position_embeddings": 4096})
    target = kernel_target(model, "bfloat16", 1)
    found = measure(target, (100, 1500, 3000), (1, 8), 2, True, silent)
    return step_lines(found), memory_lines(found, bytes_per_token(read_shape(model.config), 2))


def test_used_memory_is_the_formula_s_and_what_is_allocated_is_a_fixed_number_of_slots_more(measured: Any) -> None:
    _, memory = measured
    assert [line["context"] for line in memory] == [100, 1500, 3000]
    assert [line["formula_mb"] for line in memory] == [
        round(2 * 2 * 2 * 32 * 2 * n / 10**6, 3) for n in (100, 1500, 3000)
    ]
    for line in memory:
        assert abs(line["used_ratio"] - 1) < 0.05
        assert 0 < line["unused_slots"] <= 128 + 32
    assert abs(memory[-1]["allocated_ratio"] - 1) < 0.06
    assert [line["allocated_ratio"] for line in memory] == sorted(
        (one["allocated_ratio"] for one in memory), reverse=True
    )


def test_every_size_was_timed_and_a_longer_prompt_takes_longer(measured: Any) -> None:
    steps, _ = measured
    assert all(0 < line[name] < 10_000 for line in steps for name in ("prefill_s", "ms_1_rows", "ms_8_rows"))
    assert steps[-1]["prefill_s"] > steps[0]["prefill_s"]


@pytest.mark.parametrize("chunks", [1, 7, 60, 1100])
def test_a_corpus_has_as_many_chunks_as_were_asked_for(chunks: int) -> None:
    documents = corpus(chunks, 600)
    made = sum(len(chunk_document(document, 600)) for document in documents)
    assert chunks <= made <= chunks + 2
    assert len({document.source for document in documents}) == len(documents)


def test_indexes_are_really_built_and_grow_with_their_chunks() -> None:
    settings = IndexSettings("hash", 33, 600, True)
    lines = index_lines((20, 40, 80), settings, HashEncoder(), silent)
    assert [line["chunks"] for line in lines] == [20, 40, 80]
    assert all(line["build_s"] >= line["encode_s"] > 0 < line["cpu_s"] for line in lines)
    assert 2 < lines[2]["mb_on_disk"] / lines[0]["mb_on_disk"] < 6
    (found,) = [line for line in growth_lines({"index": lines}) if line["series"] == "mb_on_disk"]
    assert found["expected"] == "bx"
    assert 0.7 < found["slope"] < 1.3


def test_drafters_are_timed_on_references_of_each_size() -> None:
    drafters = {"trie": make_drafter("trie"), "llma": make_drafter("llma")}
    small, large = drafting_lines((200, 40_000), list(range(300)), drafters, 2, silent)
    assert list(small) == ["reference_tokens", "ms_trie", "ms_llma"]
    assert large["ms_trie"] > 5 * small["ms_trie"] > 0


def test_plots_are_drawn_of_what_was_measured(measured: Any, tmp_path: Path) -> None:
    steps, memory = measured
    results: dict[str, Any] = {"steps": steps, "memory": memory}
    results["growth"] = growth_lines(results)
    paths = scaling_plots.draw(results, tmp_path)
    assert set(paths) == {"step-time", "cache-memory"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths.values())


def test_the_command_prints_the_part_that_was_asked_for_and_keeps_it(tmp_path: Path) -> None:
    asked = ["scaling", "--parts", "drafting", "--references", "100,200", "--rounds", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, [*asked, "--json"])
    assert done.exit_code == 0, done.exception
    result = json.loads(done.stdout)
    assert [line["reference_tokens"] for line in result["drafting"]] == [100, 200]
    assert {line["series"] for line in result["growth"]} == {"ms_blend", "ms_trie", "ms_llma", "ms_suffix"}
    assert json.loads((tmp_path / "figures.json").read_text()) == result
    assert (tmp_path / "drafting-build.png").exists()


@pytest.mark.parametrize(
    ("option", "value", "wrong"),
    [("--contexts", "0", "none below 1"), ("--parts", "all", "some of steps, index, drafting")],
)
def test_choices_that_cannot_be_are_refused_before_anything_loads(option: str, value: str, wrong: str) -> None:
    done = CliRunner().invoke(cli, ["scaling", option, value])
    assert isinstance(done.exception, SettingError)
    assert wrong in str(done.exception)


def test_lists_are_read_in_their_order() -> None:
    assert numbers("contexts", " 8, 2") == [8, 2]
    assert words("a, b,") == ["a", "b"]
