"""Reading recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recorded import Recorded, holds_answers, read_recorded
from decoding.drafter import DraftRequest, Reference
from indexes.errors import SettingError


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def reference(text: str, kind: str) -> Reference:
    return Reference(tuple(letters(text)), kind)


def test_llma_s_form_gives_documents_then_the_question(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"query": "q?", "docs": ["one", "two"], "result": {"text": "an answer"}})
    assert read_recorded(path, letters) == [
        Recorded(
            (reference("one", "document"), reference("two", "document"), reference("q?", "question")),
            tuple(letters("an answer")),
            "a.jsonl, line 1",
        )
    ]


def test_the_prompt_is_the_references_in_a_row() -> None:
    references = (Reference((1, 2)), Reference((3,), "question"))
    assert Recorded(references, (4, 5)).request == DraftRequest((1, 2, 3), references)


def test_each_turn_may_copy_from_the_turns_before_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"choices": [{"turns": ["first", "second"]}]})
    assert read_recorded(path, letters) == [
        Recorded((), tuple(letters("first")), "a.jsonl, line 1"),
        Recorded((reference("first", "turn"),), tuple(letters("second")), "a.jsonl, line 1"),
    ]


def test_answers_of_fewer_than_two_tokens_are_left_out(tmp_path: Path) -> None:
    lines = [{"query": "q", "docs": [], "result": {"text": text}} for text in ("", "a", "ab")]
    assert [example.answer for example in read_recorded(written(tmp_path / "a.jsonl", *lines), letters)] == [(97, 98)]


@pytest.mark.parametrize(
    "line",
    [
        {}, {"docs": ["x"]}, {"docs": ["x"], "query": "q"}, {"docs": ["x"], "query": "q", "result": "text"},
        {"docs": 7, "query": "q", "result": {"text": "x"}}, {"choices": []}, {"choices": [{}]},
        {"choices": {"turns": 1}}, {"docs": [None], "query": "q", "result": {"text": "x"}}, [1], "docs", 7,
        {"docs": "text", "query": "q", "result": {"text": "xy"}},
        {"docs": [], "query": ["q"], "result": {"text": "xy"}},
        {"choices": [{"turns": "text"}]},
    ],
)  # fmt: skip
def test_another_form_is_refused_by_name(tmp_path: Path, line: Any) -> None:
    with pytest.raises(SettingError, match=r"a\.jsonl (holds no recorded answers \(fields query|cannot be read as)"):
        read_recorded(written(tmp_path / "a.jsonl", line), letters)


def test_files_of_questions_or_of_nothing_hold_no_answers(tmp_path: Path) -> None:
    lines: list[tuple[dict[str, Any], ...]] = [
        ({"query": "q", "docs": [], "result": {"text": "x"}},), ({"choices": []},), ({"turns": ["x"]},), (),
    ]  # fmt: skip
    assert [holds_answers(written(tmp_path / "a.jsonl", *some)) for some in lines] == [True, True, False, False]


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{")
    with pytest.raises(SettingError, match=r"a\.jsonl cannot be read as JSON lines"):
        read_recorded(path, letters)
