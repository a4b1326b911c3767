"""The figures of a run, worked by hand from its rows."""

from __future__ import annotations

from typing import Any

import pytest

from app.batch.progress import line
from app.batch.report import Examples, figures, headline, report
from app.batch.summary import Summary

MEASURES = ["exact_match", "f1", "contains", "rouge_l"]


def stats(new_tokens: int, passes: int, decode_s: float, total_s: float, copied: float = 0.5) -> dict[str, Any]:
    return {
        "new_tokens": new_tokens, "forward_passes": passes, "decode_s": decode_s, "total_s": total_s,
        "prompt_tokens": 100, "copied_fraction": copied,
    }  # fmt: skip


def row(number: int, scores: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "row": number, "question": "Who?", "expected": ["Ann"], "unanswerable": False, "scored": MEASURES,
        "scores": dict.fromkeys(MEASURES, 0.0) | (scores or {}), "error": None, "answer": "Bob", "finished": "stop",
        "stats": stats(11, 6, 1.0, 2.0), **more,
    }  # fmt: skip


FAILED = row(8, error={"type": "PromptTooLongError", "message": "too long"}) | {"scores": {}}
PLAIN = {"answer": "Bob", "stats": stats(11, 11, 2.0, 3.0), "finished": "stop", "identical": True}


def summed(*rows: dict[str, Any]) -> dict[str, Any]:
    summary = Summary()
    for item in rows:
        summary.add(item)
    return summary.to_json()


def test_scores_are_means_and_what_failed_counts_nought() -> None:
    summary = summed(row(0, {"exact_match": 1.0, "f1": 1.0}), row(1, {"f1": 0.5}), FAILED)
    assert (summary["questions"], summary["answered"], summary["failed"], summary["scored"]) == (3, 2, 1, 3)
    assert summary["errors"] == {"PromptTooLongError": 1}
    assert (summary["scores"]["exact_match"], summary["scores"]["f1"]) == (0.3333, 0.5)


def test_questions_of_which_nothing_is_known_are_not_scored() -> None:
    summary = summed(row(0, {"f1": 1.0}), row(1) | {"scored": [], "scores": {}})
    assert (summary["scored"], summary["scores"]["f1"]) == (1, 1.0)


def test_speeds_are_of_all_tokens_together() -> None:
    # 10 tokens in 5 passes in 1 s, and 30 in 5 in 3 s, each after its first one
    summary = summed(row(0), row(1, stats=stats(31, 6, 3.0, 4.0, 1.0)))
    assert (summary["accept_length"], summary["tokens_per_s"], summary["new_tokens"]) == (4.0, 10.0, 42)
    assert (summary["answering_s"], summary["copied_fraction"]) == (6.0, 0.75)


def test_plain_decoding_is_compared_by_answers_and_time() -> None:
    other = PLAIN | {"answer": "Eve", "identical": False}
    plain = summed(row(0, plain=PLAIN), row(1, plain=other))["plain"]
    assert (plain["answers"], plain["identical_answers"]) == (2, 1)
    assert (plain["accept_length"], plain["tokens_per_s"]) == (1.0, 5.0)
    assert (plain["speed_up_decoding"], plain["speed_up_answers"]) == (2.0, 1.5)


def test_precision_of_citations_is_of_the_answers_that_cite() -> None:
    both = {"scored": ["citation_precision", "citation_recall"]}
    cites = row(0) | both | {"scores": {"citation_precision": 0.5, "citation_recall": 1.0}}
    silent = row(1) | both | {"scores": {"citation_recall": 0.0}}
    assert summed(cites, silent)["scores"] == {"citation_precision": 0.5, "citation_recall": 0.5}


def test_unanswerable_questions_are_counted_apart_too() -> None:
    declined = row(0, {"exact_match": 1.0}, unanswerable=True)
    assert summed(declined, row(1, unanswerable=True), row(2))["unanswerable"] == {"questions": 2, "declined": 1}


def test_another_server_s_forward_passes_are_not_known_so_neither_is_the_accept_length() -> None:
    summary = summed(row(0, stats=stats(11, 0, 1.0, 2.0)))
    assert (summary["accept_length"], summary["tokens_per_s"]) == (None, 10.0)
    assert ("Accept length", "unknown") in figures(summary)


def test_no_rows_give_no_figures_and_no_error() -> None:
    summary = summed()
    assert (summary["questions"], summary["scores"], summary["accept_length"]) == (0, {}, 1.0)


# The report


def test_the_report_names_the_figures_and_shows_what_failed_differed_and_missed() -> None:
    rows = [
        row(0, plain=PLAIN), FAILED, row(1, plain=PLAIN | {"answer": "Eve", "identical": False}),
        row(2, {"contains": 1.0}, plain=PLAIN) | {"question": "Right?"},
    ]  # fmt: skip
    examples = Examples()
    for item in rows:
        examples.add(item)
    text = report({"run": {"dataset": "q|x", "split": "dev", "top_k": 3}, **summed(*rows)}, examples)
    assert text.startswith(
        "# q|x, split dev\n\n3 of 4 questions answered, 1 failed; 4 with a known answer.\n\n| figure"
    )
    for part in (
        "| Contains an expected text, as words | 25.0 % |", "| Speed-up of decoding | 2.00 times |",
        "| Same answer as plain decoding | 2 of 3 |", "## Failed (the first 1)\n\n- **row 9**: Who?\n  - "
        "PromptTooLongError: too long", "## Not as plain decoding (the first 1)\n\n- **row 2**", "  - plain: Eve",
        "## Missed (the first 1)\n\n- **row 1**: Who?\n  - answer: Bob\n  - expected: Ann", "| dataset | q\\|x |",
    ):  # fmt: skip
        assert part in text
    assert "Right?" not in text


def test_a_run_without_scores_reports_its_speed_all_the_same() -> None:
    summary = summed(row(0) | {"scored": [], "scores": {}})
    assert headline(summary) == "1 of 1 questions answered; 0 with a known answer."
    assert ("Accept length", "2.00") in figures(summary)


# The progress


@pytest.mark.parametrize(
    ("answered", "elapsed_s", "total", "expected"),
    [
        (2, 4.0, 7202, "0.50 questions/s · accept length 2.00 · 4:00:00 left"),
        (0, 0.0, 7202, "0.00 questions/s · accept length 2.00 · time left unknown"),
        (0, 0.0, 2, "0.00 questions/s · accept length 2.00 · done"),
    ],
)
def test_the_progress_says_questions_per_second_accept_length_and_the_time_left(
    answered: int, elapsed_s: float, total: int, expected: str
) -> None:
    summary = Summary()
    for number in range(2):
        summary.add(row(number))
    assert line(summary, total, answered, elapsed_s) == expected
