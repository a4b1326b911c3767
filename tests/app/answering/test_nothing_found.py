"""That an answer says when the documents do not, with the laptop profile's real models and with tiny ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.answering.answers import Answer, Stats, without_an_answer
from app.answering.engine import Engine
from app.documents.indexing import index_files
from app.setup.settings import Settings
from indexes.passages import Passage
from retrieval.conversation import NOTHING_FOUND, Turn
from retrieval.finder import Found, given

NOTES = """The lighthouse on the northern cape was built of white granite in 1871 by the engineer Ada Thorne.

The harbour below it froze every winter until the warm current changed its course.
"""
TURNS = (Turn("Who built the lighthouse on the northern cape?", "It was built by the engineer Ada Thorne."),)


@pytest.fixture(scope="module")
def folder(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    notes = tmp_path_factory.mktemp("notes") / "notes.txt"
    notes.write_text(NOTES)
    index_files(engine, engine.paths.indexes / "cape", [notes])
    return engine.paths.indexes / "cape"


def last(engine: Engine, question: str, folder: Path, *turns: Turn) -> Answer:
    *_, answer = engine.ask(question, folder, turns)
    return answer


def test_a_question_about_something_else_is_answered_so_without_asking_the_model(engine: Engine, folder: Path) -> None:
    answer = last(engine, "How do I create a DataFrame with pandas?", folder)
    assert (answer.text, answer.finished) == (NOTHING_FOUND, "nothing-found")
    assert answer.stats.forward_passes == answer.stats.prompt_tokens == 0
    assert answer.stats.total_s == answer.stats.retrieval_s > 0
    assert len(answer.passages) == 1
    assert answer.notes == ("nothing relevant was found; the closest passages are listed",)


def test_a_question_that_the_documents_answer_is_answered(engine: Engine, folder: Path) -> None:
    answer = last(engine, "Who built the lighthouse?", folder)
    assert "Ada Thorne" in answer.text
    assert answer.finished != "nothing-found"
    assert json.loads(json.dumps(answer.to_json()))["passages"][0]["relevance"] > 0.9


def test_a_follow_up_is_answered_where_alone_it_is_about_nothing_there(engine: Engine, folder: Path) -> None:
    assert last(engine, "What stone is that?", folder).finished == "nothing-found"
    assert last(engine, "What stone is that?", folder, *TURNS).finished != "nothing-found"


def test_off_topic_in_a_conversation_is_said_not_to_be_there(engine: Engine, folder: Path) -> None:
    assert last(engine, "Which planet has the most moons?", folder, *TURNS).text == NOTHING_FOUND


def test_a_finder_that_finds_nothing_says_the_same(engine: Engine) -> None:
    *_, answer = engine.ask("Who built the lighthouse?", given([]))
    assert (answer.text, answer.finished, answer.passages) == (NOTHING_FOUND, "nothing-found", ())
    assert answer.notes == ("nothing relevant was found",)


def answer(*relevance: float | None) -> Answer:
    passage = Passage(0, "p", "p", "p", 0, "text")
    return Answer("q", tuple(Found(passage, 0.0, chance) for chance in relevance), Stats("plain"))


def test_one_passage_that_may_be_relevant_is_enough() -> None:
    assert without_an_answer(answer(0.1, 0.3), 0.3) is None
    assert without_an_answer(answer(0.1, 0.29), 0.3) is not None


def test_a_passage_that_nobody_judged_may_be_relevant() -> None:
    assert without_an_answer(answer(0.1, None), 0.3) is None


def test_a_threshold_of_nought_refuses_nothing_that_was_found() -> None:
    assert without_an_answer(answer(0.0), 0.0) is None


def test_what_an_answer_noted_before_is_kept() -> None:
    noted = Answer("q", (), Stats("plain"), notes=("before",))
    found = without_an_answer(noted, 0.5)
    assert found is not None
    assert found.notes == ("before", "nothing relevant was found")


def test_the_setting_can_switch_it_off(engine: Engine, folder: Path) -> None:
    assert Settings().min_relevance > 0
    never = Engine(Settings(min_relevance=0, max_new_tokens=8), home=engine.paths)
    assert last(never, "How do I create a DataFrame with pandas?", folder).finished == "length"
