from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexes.passages import Passage
from indexes.store import PassageIndex, open_index, write_index
from retrieval.conversation import Turn
from retrieval.indexing import build_index
from retrieval.relevance import FITTED, Figures, Fit, RelevanceJudge, judge_of
from retrieval.retriever import Retriever
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, document, no_progress

TEXTS = ["lambda makes functions", "import loads modules"]
WEIGHTS = Fit("hash", bias=0.0, dense=0.0, late=0.0, coverage=1.0)


@pytest.fixture
def index(tmp_path: Path) -> PassageIndex:
    documents = [document(f"d{number}", text) for number, text in enumerate(TEXTS)]
    build_index(tmp_path / "i", SETTINGS, documents, HashEncoder(), no_progress)
    return open_index(tmp_path / "i")


def test_a_probability_is_the_logistic_function_of_the_weighted_figures() -> None:
    fit = Fit("hash", bias=-1.0, dense=2.0, late=3.0, coverage=4.0)
    chances = fit.chances(np.array([[0.5, 0.0, 0.0], [0.0, 1.0, 0.25]]))
    assert chances == pytest.approx([0.5, 1 / (1 + math.exp(-3))])  # logits 0 and -1 + 3 + 1


def test_a_passage_that_is_the_question_has_cosines_of_one_and_covers_all(index: PassageIndex) -> None:
    figures = RelevanceJudge(HashEncoder(), index).figures(TEXTS[0], index.passages.get([0]))
    assert figures[0] == pytest.approx([1, 1, 1], abs=0.02)


def test_coverage_weighs_words_by_how_rare_they_are_and_unknown_ones_most(index: PassageIndex) -> None:
    figures = RelevanceJudge(HashEncoder(), index).figures("lambda in Rust", index.passages.get([0, 1]))
    lambda_, rust = math.log(1 + 1.5 / 1.5), math.log(1 + 2.5 / 0.5)  # one of two passages, none of two
    assert figures[:, 2] == pytest.approx([lambda_ / (lambda_ + rust), 0])


def test_a_question_of_function_words_covers_nothing(index: PassageIndex) -> None:
    assert RelevanceJudge(HashEncoder(), index).figures("what is it", index.passages.get([0]))[0, 2] == 0


@pytest.mark.parametrize("question", ["What is this about?", "Summarize the main points of this document.", "?"])
def test_a_question_about_every_passage_is_not_judged(index: PassageIndex, question: str) -> None:
    assert RelevanceJudge(HashEncoder(), index)(question, index.passages.get([0])) is None


def test_another_encoder_s_passages_are_not_judged(index: PassageIndex) -> None:
    assert judge_of(HashEncoder(), index) is None
    assert judge_of(HashEncoder(FITTED.encoder), index) is not None


def test_an_index_without_token_vectors_is_not_judged(index: PassageIndex, tmp_path: Path) -> None:
    settings = replace(index.settings, token_vectors=False)
    write_index(tmp_path / "without", settings, index.encoded_documents().values())
    assert judge_of(HashEncoder(FITTED.encoder), open_index(tmp_path / "without")) is None


def retriever(index: PassageIndex, judged: bool = True) -> Retriever:
    encoder = HashEncoder()
    judge = RelevanceJudge(encoder, index, WEIGHTS) if judged else None
    return Retriever(encoder, index.vectors, index.postings, index.passages.get, None, judge=judge)


def test_what_is_found_is_judged(index: PassageIndex) -> None:
    first, second = retriever(index).find("lambda functions", 2)
    assert first.passage.text == TEXTS[0]
    assert first.relevance == pytest.approx(1 / (1 + math.exp(-1)))
    assert second.relevance == pytest.approx(0.5)


def test_without_a_judge_nobody_knows(index: PassageIndex) -> None:
    assert [found.relevance for found in retriever(index, judged=False).find("lambda", 2)] == [None, None]


def test_a_follow_up_is_about_what_it_goes_back_to(index: PassageIndex) -> None:
    asked: list[str] = []

    def judge(question: str, passages: Sequence[Passage]) -> Figures | None:
        asked.append(question)
        return np.full(len(passages), 0.9 if "lambda" in question else 0.2)

    turns = [Turn("lambda functions", "")]
    found = replace(retriever(index), judge=judge).find("are they recursive", 1, turns)
    assert (found[0].relevance, asked) == (0.9, ["are they recursive", "lambda functions are they recursive"])


def test_a_follow_up_without_words_of_its_own_is_not_judged(index: PassageIndex) -> None:
    assert retriever(index).find("why is that", 1, [Turn("lambda functions", "")])[0].relevance is None
