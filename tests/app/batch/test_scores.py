"""Scores, worked by hand, and TriviaQA's own sample with its own predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.batch.datasets import load
from app.batch.scores import contains, declines, exact_match, f1, normalise, rouge_l, score
from retrieval.conversation import NOTHING_FOUND

SHARED = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Beatles", "beatles"),
        ("An  apple a\tday", "apple day"),
        ("Lloyd_Webber", "lloyd webber"),
        ("rock-'n'-roll", "rock n roll"),  # punctuation becomes a space, it does not vanish as in SQuAD's scorer
        ("O’Neill ‘s´t`", "o neill s t"),
        ("U.S.A.", "u s"),  # the last letter stands alone then, and is taken for an article: so the official scorer
        ("theatre", "theatre"),
        ("...", ""),
    ],
)
def test_texts_are_normalised_as_triviaqa_s_scorer_does(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_an_exact_match_is_one_after_normalisation() -> None:
    assert exact_match("The Sunset  Blvd.", "sunset blvd") == 1
    assert exact_match("Sunset Boulevard", "sunset blvd") == 0


def test_f1_is_of_words_counted_with_repetition() -> None:
    # 4 words, 3 expected; "new" and "york" are shared, "york" once only: precision 2/4, recall 2/3
    assert f1("new york york city", "new york state") == pytest.approx(4 / 7)
    assert f1("cats", "dogs") == 0
    assert f1("", "dogs") == 0


def test_an_answer_contains_an_expected_text_as_whole_words_only() -> None:
    assert contains("It is the Sunset Boulevard, in L.A.", "sunset boulevard") == 1
    assert contains("It was a catalogue.", "cat") == 0
    assert contains("anything", "...") == 0


def test_rouge_l_is_of_the_longest_common_subsequence_of_stems() -> None:
    # "cat sat mat" is common to both: 3 of 4 words here, 3 of 6 there; F = 2 * (3/4 * 3/6) / (3/4 + 3/6) = 0.6
    assert rouge_l("cats sat big mat", ["a cat sat on my mat"]) == pytest.approx(0.6)


def test_the_best_expected_text_counts() -> None:
    scores = score("Sunset Blvd", ["west sunset boulevard", "sunset blvd"])
    assert scores == {"exact_match": 1, "f1": 1, "contains": 1, "rouge_l": 1}


def test_a_question_of_which_nothing_is_known_has_no_scores() -> None:
    assert score("anything", []) == {}


@pytest.mark.parametrize(
    "answer",
    [
        "",
        NOTHING_FOUND,
        "The text does not contain the answer.",
        "The given text doesn’t mention who won.",
        "The answer is not given in the passage.",
        "There is no information about it.",
        "I cannot answer that from the text.",
        "The text does not provide any information about the World Cup.",
    ],
)
def test_an_answer_that_declines_is_right_where_there_is_none(answer: str) -> None:
    assert declines(answer)
    assert score(answer, [], unanswerable=True) == {"exact_match": 1, "f1": 1, "contains": 1}


@pytest.mark.parametrize("answer", ["France won.", "It is not equal to itself.", "There are no two alike in the list."])
def test_an_answer_that_answers_is_wrong_where_there_is_none(answer: str) -> None:
    assert not declines(answer)
    assert score(answer, [], unanswerable=True) == {"exact_match": 0, "f1": 0, "contains": 0}


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"TriviaQA's sample is not in {SHARED}")
def test_triviaqa_s_own_sample_scores_what_its_scorer_says() -> None:
    question = load(str(SHARED / "triviaqa_sample.json")).question(0)
    predictions = json.loads((SHARED / "triviaqa_sample_predictions.json").read_text())
    (prediction,) = predictions.values()
    scores = score(prediction, question.expected)
    assert (scores["exact_match"], scores["f1"]) == (1, 1)  # its scorer prints 100.0 for both
