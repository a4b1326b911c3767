"""Bytes of datastores against accept length: the division of texts, the comparison, and the commands' results."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import crest_opening, datastore_sizes
from benchmarks.datastore_sizes import Line, compare
from benchmarks.python_sources import CHOSEN_ON, REPORTED, part_of, read_sources
from benchmarks.recorded import read_recorded
from benchmarks.simulate import Replayed
from indexes.crest_build import CrestSettings
from indexes.errors import SettingError
from tests.indexes.stores import crest


class Words:
    """A tokenizer with one token per word."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str, add_special_tokens: bool) -> Any:
        return SimpleNamespace(input_ids=[self.ids.setdefault(word, len(self.ids)) for word in text.split()])

    def __len__(self) -> int:
        return 1000

    def get_vocab(self) -> dict[str, int]:
        return self.ids


def write_answers(path: Path, count: int) -> Path:
    said = "the lighthouse on the northern cape was built of white granite and the harbour below it froze"
    turns = [[f"Answer {index} : {said} {index}", f"Later {index} : {said}"] for index in range(count)]
    path.write_text("".join(json.dumps({"choices": [{"turns": turn}]}) + "\n" for turn in turns))
    return path


def test_every_answer_is_reported_once_and_never_in_its_own_stores(tmp_path: Path) -> None:
    write_answers(tmp_path / "a.jsonl", 7)
    words = Words()
    examples = read_recorded(tmp_path / "a.jsonl", lambda text: words(text, False).input_ids)
    turns = datastore_sizes._turns(examples, tmp_path)
    reported = [text for turn in turns for text in turn.reported]
    assert sorted(reported) == sorted(example.answer for example in examples)
    for turn in turns:
        parts = [set(turn.corpus), set(turn.reported), set(turn.chosen_on)]
        assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
        assert turn.corpus  # first turns only
        assert all(words.ids["Later"] != text[0] for text in turn.corpus)


def test_the_benchmark_gives_every_store_and_one_comparison(tmp_path: Path) -> None:
    labels = []
    result = datastore_sizes.run(
        Words(), write_answers(tmp_path / "a.jsonl", 10), progress=lambda label, done, total: labels.append(label)
    )
    assert result["conditions"]["max_nodes"] == 32
    assert [line["kind"] for line in result["stores"]].count("rest") == 5
    for line in result["stores"]:
        assert line["bytes"] > 0
        assert line["tokens_per_step"] >= 1.0
    assert len(result["comparison"]) == 1
    assert "Stores of a.jsonl" in labels


def test_too_few_answers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="has 4 conversations; 5 are needed"):
        datastore_sizes.run(Words(), write_answers(tmp_path / "a.jsonl", 4))


def line(kind: str, size: int, reported: int, chosen_on: int) -> Line:
    """A store with these tokens in 100 steps."""
    replays = [Replayed(tokens, 100) for tokens in (reported, chosen_on)]
    return Line(kind, {}, [size], replays[:1], replays[1:])


def test_the_store_compared_is_the_best_of_a_tenth_on_the_texts_to_choose_on() -> None:
    ladder = [
        line("rest", 1000, 200, 0),
        line("a", 100, 210, 150),
        line("b", 90, 190, 160),  # better where it is chosen, worse where it is reported
        line("c", 101, 300, 300),  # more than a tenth
    ]
    found = compare("texts", ladder)
    assert found["crest"] == ["b"]
    assert found["says"] == (
        "CREST at 9.0 % of REST's bytes falls short of REST's accept length: 1.900 against 2.000 tokens per step, "
        "-5.0 %."
    )
    assert "keeps at least" in compare("texts", ladder[:2])["says"]


def test_no_store_of_a_tenth_is_said() -> None:
    found = compare("texts", [line("rest", 1000, 200, 0), line("a", 101, 210, 150)])
    assert found["says"] == "No CREST store takes a tenth of REST's 1000 bytes or less."


def test_python_sources_are_divided_by_package_and_copies_left_out(tmp_path: Path) -> None:
    names = [f"package{number}" for number in range(60)]
    of = {part: [name for name in names if part_of(name) == part] for part in range(10)}
    held_out, tuned, used = of[REPORTED][0], of[CHOSEN_ON][0], of[2][0]

    def source(package: str, name: str, *said: str) -> None:
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        (tmp_path / package / name).write_text("\n".join(f"{one} = 'a long line of code of {one}'" for one in said))

    source(used, "a.py", *(f"used_{number}" for number in range(9)))
    source(held_out, "own.py", *(f"held_out_{number}" for number in range(9)))
    source(held_out, "copy.py", *(f"used_{number}" for number in range(9)), "more")
    source(f"{held_out}/_vendor", "b.py", *(f"vendored_{number}" for number in range(9)))
    source(tuned, "c.py", *(f"tuned_{number}" for number in range(9)))
    found = read_sources(10**6, 5, lambda *_: None, tmp_path)
    assert [len(texts) for texts in (found.corpus, found.reported, found.chosen_on)] == [1, 1, 1]
    assert (found.corpus[0][:6], found.reported[0][:6], found.chosen_on[0][:6]) == ("used_0", "held_o", "tuned_")


def test_opening_a_datastore_in_a_fresh_process_is_measured(tmp_path: Path) -> None:
    crest(tmp_path / "s", [[1, 2, 3, 4, 5], [0, 2, 0]], CrestSettings(max_ngram=3))
    [found] = crest_opening.run(tmp_path / "s", 50)["stores"]
    assert found["found"] == 1.0
    assert 0 < found["lookup_us_median"] <= found["lookup_us_p99"]
    assert found["open_ms"] > 0
    assert found["rss_added_mb"] < 20
