"""The application reuses what a session had read, for that session alone, and the answers stay what they were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.documents.indexing import index_files

TEXT = "The lighthouse on the northern cape was built of white granite in the year 1871 by Ada Thorne. " * 2
QUESTION = "Who built the lighthouse?"


@pytest.fixture
def folder(engine: Engine, tmp_path: Path) -> Path:
    (tmp_path / "cape.txt").write_text(TEXT)
    index = tmp_path / "index"
    index_files(engine, index, [tmp_path / "cape.txt"])
    engine.load()
    return index


@pytest.fixture
def reused(engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each prompt found in the cache."""
    found: list[int] = []
    prefill = engine.target.prefill

    def noted(tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        found.append(cached)
        return prefill(tokens, cached)

    monkeypatch.setattr(engine.target, "prefill", noted)
    return found


SHORT = AnswerOptions(max_new_tokens=12)


def ask(engine: Engine, folder: Path, person: str | None, question: str = QUESTION) -> Any:
    *_, answer = engine.ask(question, folder, person=person, options=SHORT)
    return answer


def test_a_session_s_next_question_reads_the_instructions_no_more(
    engine: Engine, folder: Path, reused: list[int]
) -> None:
    answers = [
        ask(engine, folder, "ann", question) for question in (QUESTION, "When was the lighthouse built?", QUESTION)
    ]
    assert reused[0] == 0
    assert reused[1] > 20  # the instructions and the passage, which comes before the question
    assert answers[2].text == answers[0].text == ask(engine, folder, None).text


def test_nobody_finds_what_another_session_had_read(engine: Engine, folder: Path, reused: list[int]) -> None:
    for person in ("eve", "bob", None, "eve"):
        ask(engine, folder, person)
    assert reused[:3] == [0, 0, 0]
    assert reused[3] > 20


def test_a_session_that_is_forgotten_begins_anew(engine: Engine, folder: Path, reused: list[int]) -> None:
    ask(engine, folder, "dan")
    engine.forget("dan")
    ask(engine, folder, "dan")
    assert reused == [0, 0]


def test_an_answer_that_is_stopped_half_way_leaves_nothing_wrong(
    engine: Engine, folder: Path, reused: list[int]
) -> None:
    expected = ask(engine, folder, None).text
    answers = engine.ask(QUESTION, folder, person="kim", options=SHORT)
    for _ in range(4):
        next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert ask(engine, folder, "kim").text == expected
    assert reused[-1] > 20
