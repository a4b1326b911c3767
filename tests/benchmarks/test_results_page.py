"""The report's page and plots, from figures made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import report
from benchmarks.__main__ import cli
from benchmarks.plots import draw
from benchmarks.report import BUDGETS
from benchmarks.results_page import render
from indexes.errors import SettingError

PNG = b"\x89PNG\r\n\x1a\n"


def line(drafter: str, nodes: int, tokens: float) -> dict[str, Any]:
    calibrated = {"calibration_error": 0.0123} if drafter.startswith("blend") else {}
    return calibrated | {
        "drafter": drafter, "data": "answers.jsonl", "examples": 9, "max_nodes": nodes, "tokens_per_step": tokens,
        "nodes_per_step": nodes / 2, "build_ms": 1.0, "build_ms_per_1000_tokens": 0.9, "propose_ms_median": 0.3,
        "propose_ms_p99": 0.5,
    }  # fmt: skip


def decoded(method: str, speed_up: float) -> dict[str, Any]:
    return {
        "method": method, "accept_length": 2.5, "speed_up": speed_up, "tokens_per_s": 40.25, "nodes_per_pass": 7.5,
        "total_time_against_plain": 0.6, "identical_to_plain": 0.75, "propose_ms_median": 0.25,
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    strength = {"plain": 1.0, "trie": 3.0, "blend-cold": 3.5, "blend": 4.0, "oracle": 5.0, "oracle-jump": 6.0}
    table = [{"predicted_from": 0.1 * at, "nodes": 9 - at, "predicted": 0.1 * at, "accepted": 0.09} for at in range(9)]
    store = {"corpus": "answers", "settings": {"least": 2}, "nodes_per_step": 3.0, "lookup_us_median": 12.5}
    conditions = {
        "data": "prompts.jsonl", "dtype": "float32", "questions": 2, "max_new_tokens": 9, "max_nodes": 32,
        "prompt_tokens_mean": 700, "target": "lean",
    }  # fmt: skip
    return {
        "conditions": {"machine": "a machine"},
        "simulate": [
            {
                "data": "answers.jsonl", "fitted_on": "4 of 5 folds", "folds": [[0, 1], [2]],
                "lines": [line(name, nodes, value) for name, value in strength.items() for nodes in BUDGETS
                          if nodes == 8 or "oracle" not in name],
                "reliability": {"blend": table, "blend-cold": table},
            }
        ],
        "trie": {
            "grid": [line("trie", 32, n / p) | {"n": n, "prefix_length": p} for n in (8, 13) for p in (2, 3)],
            "num_draft": [line("trie", nodes, 3.0) for nodes in (8, 32)],
        },
        "stores": {
            "stores": [store | {"kind": "rest", "bytes": 9000, "tokens_per_step": 2.0},
                       store | {"kind": "crest", "bytes": 800, "tokens_per_step": 1.9}],
            "comparison": [{"corpus": "answers", "says": "CREST keeps less, by 5.0%"}],
            "conditions": {"max_nodes": 32},
        },
        "decode": [{"conditions": conditions, "methods": [decoded("plain", 1.0), decoded("blend", 2.125)]}],
    }  # fmt: skip


def test_the_page_holds_every_figure_and_links_every_plot(results: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "docs" / "results.md"
    plots = draw(results, page.with_suffix(""))
    assert len(plots) == 4
    assert {path.read_bytes()[:8] for path in plots.values()} == {PNG}
    text = render(results, plots, page, "the command")
    for wanted in (
        "Made by `the command`",
        "- machine: a machine",
        "| `blend` | 4.000 (4) | 4.000 (8) | 4.000 (16) | 4.000 (32) | 0.9 | 0.3 | 0.5 |",
        "| `oracle` | 5.000 |",
        "Ahead at 8 nodes: `blend`, then `blend-cold`",
        "[figures.json](results/figures.json) lists the folds",
        "Expected calibration error: `blend-cold` 0.0123, `blend` 0.0123",
        "the first 2 questions of each file, at most 9 new tokens",
        "### prompts.jsonl, float32",
        "| `blend` | 2.5 | 2.12x | 40.25 | 7.5 | 0.60 | 75% | 0.25 |",
        "- answers: CREST keeps less, by 5.0%",
        "| answers | crest | least 2 | 800 | 1.9 | 3.0 | 12.5 |",
        *(f"](results/{name}.png)" for name in ("nodes", "trie-grid", "datastores", "reliability")),
    ):
        assert wanted in text


def test_the_page_says_so_where_blend_does_not_lead(results: dict[str, Any], tmp_path: Path) -> None:
    for one in results["simulate"][0]["lines"]:
        if (one["drafter"], one["max_nodes"]) == ("trie", 16):
            one["tokens_per_step"] = 4.5
    text = render(results, draw(results, tmp_path / "r"), tmp_path / "r.md", "")
    assert "16 nodes: `trie`, then `blend`; 32 nodes: `blend`" in text


def test_the_page_is_made_again_from_the_last_run_s_figures(results: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "figures.json").write_text(json.dumps(results))
    assert CliRunner().invoke(cli, ["report", "--redraw", "--out", str(page)]).exit_code == 0
    assert "- machine: a machine" in page.read_text("utf-8")


def test_benchmarks_that_were_run_apart_have_their_sections(results: dict[str, Any], tmp_path: Path) -> None:
    plots = draw(results, tmp_path / "r")
    (tmp_path / "r" / "scaling").mkdir()
    (tmp_path / "r" / "scaling" / "step-time.png").write_bytes(PNG)
    conditions = {"machine": "a machine", "gpu": None, "vllm": {"threads": 2}}
    lines = [{"drafter": "blend", "share": 1.0, "differences": []}, {"drafter": "trie", "share": 0.91234567}]
    (tmp_path / "r" / "identity.json").write_text(json.dumps({"conditions": conditions, "drafters": lines}))
    (tmp_path / "r" / "scaling.json").write_text(json.dumps({"conditions": {}, "steps": [{"context": 512}]}))
    text = render(results, plots, tmp_path / "r.md", "")
    assert "## Exact in 16 bits" in text
    assert "machine: a machine; vllm: threads 2." in text
    assert "| drafter | share |\n|---|---|\n| blend | 1 |\n| trie | 0.9123 |" in text
    assert "![step-time](r/scaling/step-time.png)" in text
    assert "Beside other engines" not in text


def test_a_section_whose_file_is_torn_is_named(results: dict[str, Any], tmp_path: Path) -> None:
    plots = draw(results, tmp_path / "r")
    (tmp_path / "r" / "peers.json").write_text('{"conditions": ')
    with pytest.raises(SettingError, match=r"peers\.json does not hold figures of `peers`"):
        render(results, plots, tmp_path / "r.md", "")


@pytest.mark.parametrize(("arguments", "wrong"), [(["--redraw"], "holds no figures"), ([], "--data FOLDER")])
def test_a_report_without_figures_or_data_says_what_to_give(tmp_path: Path, arguments: list[str], wrong: str) -> None:
    done = CliRunner().invoke(cli, ["report", *arguments, "--out", str(tmp_path / "page.md")])
    assert isinstance(done.exception, SettingError)
    assert wrong in str(done.exception)


def test_a_folder_that_lacks_data_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["report", "--data", str(tmp_path), "--out", str(tmp_path / "page.md")])
    assert isinstance(done.exception, SettingError)
    assert "lacks llma_rag.jsonl, llma_cnndm.jsonl, mt_bench_vicuna7b_answers.jsonl" in str(done.exception)


@pytest.mark.parametrize("figures", ["[]", "{}", '{"simulate": []}', '{"simulate": 5}'])
def test_figures_of_another_version_are_refused(tmp_path: Path, figures: str) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "figures.json").write_text(figures)
    done = CliRunner().invoke(cli, ["report", "--redraw", "--out", str(tmp_path / "page.md")])
    assert isinstance(done.exception, SettingError)
    assert "holds other figures than this version's" in str(done.exception)


@pytest.mark.parametrize("page", [".", "/", "page"])
def test_a_page_that_is_a_folder_or_would_be_is_refused(page: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["report", "--data", str(tmp_path), "--out", page])
    assert isinstance(done.exception, SettingError)
    assert "--out" in str(done.exception)


def test_where_nothing_can_be_written_is_found_out_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "check_data", lambda _: None)
    monkeypatch.setattr(report, "collect", lambda *_: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    done = CliRunner().invoke(cli, ["report", "--data", str(tmp_path), "--out", str(tmp_path / "file" / "page.md")])
    assert isinstance(done.exception, OSError)
