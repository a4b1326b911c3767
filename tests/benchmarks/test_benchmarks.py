"""The benchmarks run end to end: on small data of our own, and on the public data where ../shared holds it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.answering.engine import Engine
from benchmarks import decode
from benchmarks.data import Question, read_prompts, read_squad, sample
from benchmarks.decode import answer_ways, run
from decoding.drafters.ngram_trie import NgramTrieDrafter
from indexes.errors import SettingError

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"

LIGHTHOUSE = "The lighthouse on the northern cape was built of white granite in the year 1871 by Ada Thorne."
HARBOUR = "The harbour below it froze every winter until the warm current changed its course."


def _benchmark(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments, "--json"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _write_spec_bench(path: Path) -> Path:
    prompt = f"{LIGHTHOUSE}\n{HARBOUR}\nRepeat word for word: who built the lighthouse on the northern cape?"
    path.write_text(json.dumps({"question_id": 7, "turns": [prompt]}) + "\n")
    return path


def _write_squad(path: Path) -> Path:
    asked = [{"question": "Who built the lighthouse?", "is_impossible": False}]
    impossible = [{"question": "Who painted it?", "is_impossible": True}]
    paragraphs = [{"context": HARBOUR, "qas": impossible}, {"context": LIGHTHOUSE, "qas": asked}]
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return path


def test_decode_times_every_method_and_says_how_many_answers_stayed_the_same(tmp_path: Path) -> None:
    data = _write_spec_bench(tmp_path / "prompts.jsonl")
    result = _benchmark("decode", "--data", str(data), "--max-new-tokens", "24", "--dtype", "float32")
    assert result["conditions"]["questions"] == 1
    names = ["plain", "blend", "trie", "llma", "prompt-lookup", "hf-generate", "hf-prompt-lookup"]
    assert [line["method"] for line in result["methods"]] == names
    for line in result["methods"]:
        assert line["identical_to_plain"] == 1.0
        assert line["tokens_per_s"] > 0
    assert result["methods"][0]["accept_length"] == 1.0
    assert result["methods"][1]["accept_length"] > 1.0
    assert result["methods"][0]["speed_up"] == result["methods"][0]["total_time_against_plain"] == 1.0


def test_decode_asks_again_and_takes_fixed_budgets(tmp_path: Path) -> None:
    data = _write_spec_bench(tmp_path / "prompts.jsonl")
    choices = ("--methods", "trie@2,token-recycling", "--runs", "3", "--max-new-tokens", "12", "--dtype", "float32")
    fixed, kept = _benchmark("decode", "--data", str(data), *choices)["methods"]
    assert (fixed["method"], fixed["identical_to_plain"], kept["identical_to_plain"]) == ("trie@2", 1.0, 1.0)
    assert 0 < fixed["nodes_per_pass"] <= 2
    assert fixed["tokens"] == kept["tokens"] > 12
    times = sorted(kept["total_times"].values())
    assert (len(times), kept["total_time_against_plain"]) == (3, times[1])


def test_a_run_learns_nothing_from_the_runs_before_it(engine: Engine, tmp_path: Path) -> None:
    data = _write_spec_bench(tmp_path / "prompts.jsonl")

    def accept_length(runs: int) -> float:
        done = decode.run(engine, data, None, ["blend@8"], None, 0, 24, lambda *_: None, runs)
        length: float = done["methods"][0]["accept_length"]
        return length

    assert accept_length(3) == accept_length(1)


def test_a_drafter_that_fails_is_told_of(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("out of guesses")

    monkeypatch.setattr(NgramTrieDrafter, "propose", fail)
    data = _write_spec_bench(tmp_path / "prompts.jsonl")
    plain, trie = decode.run(engine, data, None, ["plain", "trie@4"], None, 0, 6, lambda *_: None)["methods"]
    assert "drafter_switched_off" not in plain
    assert trie["drafter_switched_off"].startswith("in 1 of 1 answers: ")
    assert "out of guesses" in trie["drafter_switched_off"]


@pytest.mark.parametrize("method", ["tree", "trie@", "trie@many", "hf-generate@3", "@4", "blend@1025"])
def test_an_unknown_method_is_refused_by_name(engine: Engine, method: str) -> None:
    with pytest.raises(SettingError, match=f"unknown method '{method}'; choose from blend, trie,"):
        answer_ways(engine, ["plain", method])


def test_more_questions_left_out_than_there_are_is_refused(engine: Engine, tmp_path: Path) -> None:
    data = _write_spec_bench(tmp_path / "prompts.jsonl")
    with pytest.raises(SettingError, match="no more than the 1 questions"):
        run(engine, data, None, [], None, 1, 8, lambda *_: None)


@pytest.mark.parametrize(
    "text",
    ["5", '"turns"', '{"turns": []}', '{"turns": [5]}', '{"docs": "", "query": 1}\n{"turns": [""]}', "[" * 10**6],
)
def test_prompts_in_another_form_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(SettingError, match=r"a\.jsonl"):
        read_prompts(tmp_path / "a.jsonl")


def test_retrieval_scores_every_stage_on_answerable_questions_only(tmp_path: Path) -> None:
    result = _benchmark("retrieval", "--data", str(_write_squad(tmp_path / "squad.json")))
    assert result["conditions"]["questions"] == 1
    assert [line["stage"] for line in result["stages"]] == ["dense", "lexical", "fused", "reranked"]
    for line in result["stages"]:
        assert (line["recall@1"], line["mrr"]) == (1.0, 1.0)


def test_drafted_answers_are_identical_on_public_questions() -> None:
    data = SHARED / "spec_bench_rag.jsonl"
    if not data.exists():
        pytest.skip(f"needs the public data set {data.name} in ../shared/data")
    result = _benchmark("identity", "--data", str(data), "--limit", "2", "--max-new-tokens", "40")
    assert [(line["drafter"], line["identical"]) for line in result["drafters"]] == [
        ("plain", 2),
        ("blend", 2),
        ("trie", 2),
        ("llma", 2),
        ("prompt-lookup", 2),
        ("hostile", 2),
    ]


def test_llma_examples_are_read_with_docs_and_query_as_references(tmp_path: Path) -> None:
    path = tmp_path / "llma.jsonl"
    path.write_text(json.dumps({"query": "who?", "docs": ["one  doc", "two"], "result": {"text": "x"}}))
    (example,) = read_prompts(path)
    assert example.references == ("one doc", "two", "who?")
    assert example.prompt == "one doc\n\ntwo\n\nQuestion: who?\nAnswer:"


def test_prompts_of_another_form_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"text": "x"}')
    with pytest.raises(SettingError, match=r"other.jsonl has format 'unknown'; known are spec-bench and llma"):
        read_prompts(path)


def test_squad_questions_point_to_their_paragraph(tmp_path: Path) -> None:
    paragraphs, questions = read_squad(_write_squad(tmp_path / "squad.json"))
    assert paragraphs == [HARBOUR, LIGHTHOUSE]
    assert questions == [Question("Who built the lighthouse?", 1)]


def test_the_held_out_sample_shares_no_question_with_the_reported_one() -> None:
    questions = [Question(str(number), number) for number in range(100)]
    reported, held_out = sample(questions, 60, seed=0), sample(questions, 60, seed=0, rest=True)
    assert len(reported) == 60
    assert len(held_out) == 40
    assert not set(reported) & set(held_out)
