from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.documents.indexing import build_python_docs
from benchmarks import follow_ups_run
from benchmarks.data import read_lines
from benchmarks.follow_ups_run import DIALOGUES, read_dialogues, squad_dialogues
from indexes.errors import SettingError
from indexes.passage_store import PassageStore
from retrieval.chunking import chunk_document
from retrieval.python_docs import python_docs
from tests.indexes.small import no_progress, passage_store


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> PassageStore:
    documents = [(document, chunk_document(document, 600)) for document in python_docs()]
    return passage_store(tmp_path_factory.mktemp("passages") / "p", *documents)


def test_what_the_dialogues_want_stands_in_the_built_in_corpus(passages: PassageStore) -> None:
    found, left_out = read_dialogues(passages, "all")
    assert len(found) + left_out == len(read_lines(DIALOGUES))
    assert left_out <= len(found) / 10  # the corpus differs a little between versions of Python


def test_the_halves_share_no_dialogue(passages: PassageStore) -> None:
    halves = [
        {(item.turns, item.question) for item in read_dialogues(passages, half)[0]} for half in ("choose", "report")
    ]
    assert not halves[0] & halves[1]
    assert min(map(len, halves)) > 40


def test_an_unknown_half_is_refused(passages: PassageStore) -> None:
    with pytest.raises(SettingError, match="half is 'third'; choose one of report, choose, all"):
        read_dialogues(passages, "third")


def test_a_squad_question_follows_one_about_a_paragraph_far_away(tmp_path: Path) -> None:
    paragraphs = [
        {"context": f"Paragraph {row}. Its end.", "qas": [{"question": f"Which is {row}?", "is_impossible": False}]}
        for row in range(9)
    ]
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    texts, dialogues = squad_dialogues(tmp_path / "squad.json")
    assert (len(texts), len(dialogues)) == (9, 9)
    for dialogue in dialogues:
        (wanted,), (before,) = dialogue.wanted, dialogue.turns
        assert abs(int(before.question.split()[-1][:-1]) - wanted) > 2
        assert before.answer == f"Paragraph {before.question.split()[-1][:-1]}"


def test_our_way_finds_more_follow_ups_than_the_question_before_and_keeps_new_topics(engine: Engine) -> None:
    build_python_docs(engine)
    lines = follow_ups_run.run(engine, "report", None, False, no_progress)["ways"]
    found = {(line["dialogues"], line["way"]): line["recall@3"] for line in lines}
    assert found["follow-ups", "alone"] < found["follow-ups", "with the question before"] < found["follow-ups", "ours"]
    assert found["standing alone", "ours"] >= found["standing alone", "alone"] - 0.06  # one dialogue of 17
