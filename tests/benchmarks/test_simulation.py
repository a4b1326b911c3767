"""The simulate benchmark on small data of our own, with letters as tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.simulation import FOLDS, REPLAYABLE, Simulation, recorded_beside, simulate
from decoding.blend.scorer import Scorer, load_scorer
from indexes.errors import SettingError

ANSWERS = ["the cape", "a harbour", "of granite", "by Ada", "in winter", "frozen"]


class Letters:
    """A tokenizer whose tokens are ASCII letters."""

    def __len__(self) -> int:
        return 128

    def __call__(self, text: str, add_special_tokens: bool) -> SimpleNamespace:
        assert not add_special_tokens
        return SimpleNamespace(input_ids=[ord(letter) for letter in text])

    def batch_decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(map(chr, one)) for one in ids]


def silent(label: str, done: int, total: int) -> None:
    assert label
    assert 0 <= done <= total


def written(path: Path, answers: Sequence[str]) -> Path:
    lines = [{"query": "who?", "docs": [f"as said: {text}."], "result": {"text": text}} for text in answers]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "our_one.jsonl", ANSWERS)


def test_tokens_per_step_are_at_most_those_of_the_oracles(data: Path) -> None:
    result = simulate(Letters(), data, [name for name in REPLAYABLE if name != "blend"], 8, [], silent)
    per_step = {line["drafter"]: line["tokens_per_step"] for line in result["drafters"]}
    assert per_step["plain"] == 1.0
    assert max(per_step.values()) == per_step["oracle-jump"] >= per_step["oracle"]
    assert per_step["suffix-tuned"] > per_step["suffix"] > 1
    assert result["conditions"]["max_nodes"] == 8


def test_oracles_are_not_bound_by_max_nodes(data: Path) -> None:
    one, many = (simulate(Letters(), data, ["oracle"], nodes, [], silent)["drafters"][0] for nodes in (1, 64))
    assert one["tokens_per_step"] == many["tokens_per_step"] > 2
    assert one["max_nodes"] == many["max_nodes"] == len("of granite")


def test_no_answer_is_in_the_training_of_its_own_fold(data: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "our_two.jsonl", ["elsewhere"])
    simulation = Simulation(Letters(), data, [other], silent)
    assert sorted(index for fold in simulation.folds for index in fold) == list(range(6))
    for number, fold in enumerate(simulation.folds):
        training = [one.answer for one in simulation.training(number)]
        assert not {simulation.examples[index].answer for index in fold} & set(training)
        assert len(training) == 6 - len(fold) + 1


def test_no_turn_of_a_conversation_is_in_the_training_of_another(tmp_path: Path) -> None:
    lines = [{"choices": [{"turns": [f"the {number} talk", "and more"]}]} for number in range(7)]
    data = tmp_path / "talks_a.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    simulation = Simulation(Letters(), data, [], silent)
    for fold, indices in enumerate(simulation.folds):
        inside = {simulation.examples[index].conversation for index in indices}
        assert len(indices) == 2 * len(inside)
        assert inside.isdisjoint(one.conversation for one in simulation.training(fold))


def test_blend_is_cross_fitted_and_tells_of_its_calibration(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def fitted(examples: Sequence[object], table: object) -> Scorer:
        seen.append(len(examples))
        return load_scorer()

    monkeypatch.setattr("benchmarks.simulation.fit", fitted)
    result = simulate(Letters(), data, ["blend"], 8, [], silent)
    (line,) = result["drafters"]
    assert sorted(seen) == [4, 5, 5, 5, 5]
    assert line["tokens_per_step"] > 1.5
    assert 0 <= line["calibration_error"] <= 1
    assert sum(row["nodes"] for row in result["reliability"]) == pytest.approx(
        line["nodes_per_step"] * sum(len(text) - 1 for text in ANSWERS) / line["tokens_per_step"], rel=0.02
    )
    assert result["conditions"]["fitted_on"] == "4 of 5 folds"


def test_a_drafter_that_needs_a_model_is_refused_by_name(data: Path) -> None:
    with pytest.raises(SettingError, match=r"lookahead, nonsense cannot be replayed .* choose all, plain, "):
        simulate(Letters(), data, ["plain", "lookahead", "nonsense"], 8, [], silent)


def test_too_few_answers_for_the_folds_are_refused(tmp_path: Path) -> None:
    few = written(tmp_path / "few.jsonl", ["ab"] * (FOLDS - 1))
    with pytest.raises(SettingError, match=r"few\.jsonl has 4 answers of two tokens and more; 5 are needed"):
        simulate(Letters(), few, ["plain"], 8, [], silent)


def test_recorded_answers_beside_a_file_are_those_that_are_named_alike(data: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "our_two.jsonl", ["elsewhere"])
    written(tmp_path / "their_one.jsonl", ["elsewhere"])
    (tmp_path / "our_questions.jsonl").write_text('{"turns": ["who?"]}\n')
    assert recorded_beside(data) == [other]
