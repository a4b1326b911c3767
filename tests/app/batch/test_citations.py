"""HAGRID's citations, worked by hand."""

from __future__ import annotations

import pytest

from app.answering.spans import Span
from app.batch.citations import citation_scores, citations, cited_numbers, without_marks

ANSWER = "The cat sat. The dog ran! Nobody slept."
#         0         1         2         3
#         012345678901234567890123456789012345678


def span(start: int, end: int, quote: str) -> Span:
    return Span(start, end, quote, 0, end - start)


def test_marks_are_numbers_in_brackets_alone_or_listed() -> None:
    assert cited_numbers("It is so [1][3], they say [2, 03].") == ["1", "3", "2"]
    assert cited_numbers("An array[x] and a year (1999)") == []


def test_a_recorded_answer_is_compared_without_its_marks() -> None:
    assert without_marks("It is so [1][3]. Yes [2, 3].") == "It is so. Yes."


def test_each_sentence_cites_the_quotes_that_its_spans_stand_in() -> None:
    assert citations(ANSWER, [span(0, 11, "1"), span(13, 20, "2"), span(21, 25, "1")]) == [
        (0, "1"), (1, "2"), (1, "1"),
    ]  # fmt: skip


def test_two_spans_of_a_sentence_in_one_quote_are_one_citation() -> None:
    assert citations(ANSWER, [span(0, 3, "1"), span(4, 7, "1")]) == [(0, "1")]


def test_a_span_that_runs_over_two_sentences_is_a_citation_of_both() -> None:
    assert citations(ANSWER, [span(4, 20, "2")]) == [(0, "2"), (1, "2")]


def test_a_span_that_ends_with_its_sentence_is_in_that_one_only() -> None:
    assert citations(ANSWER, [span(0, 12, "1")]) == [(0, "1")]


def test_precision_is_of_our_citations_and_recall_of_the_recorded_quotes() -> None:
    # two of three citations are of quotes that the recorded answer cites; of its quotes 1, 2 and 4 only 1 is cited
    scores = citation_scores([(0, "1"), (1, "1"), (1, "3")], [["1", "2", "4"]])
    assert scores == {"citation_precision": pytest.approx(2 / 3), "citation_recall": pytest.approx(1 / 3)}


def test_the_recorded_answer_that_fits_best_counts() -> None:
    assert citation_scores([(0, "2")], [["1"], ["2"], ["1", "2"]]) == {"citation_precision": 1, "citation_recall": 1}


def test_an_answer_that_cites_nothing_has_no_precision_and_recalls_nothing() -> None:
    assert citation_scores([], [["1"]]) == {"citation_recall": 0}


def test_where_nothing_is_recorded_nothing_is_scored() -> None:
    assert citation_scores([(0, "1")], [[]]) == {}
