from __future__ import annotations

import bs4

from app.answering.answers import Answer, Stats
from app.answering.spans import Span, Tracer
from app.page.answers_html import answer_html, passages_html, turn_html
from app.page.conversations import StoredTurn
from indexes.passages import Passage
from retrieval.finder import Found


def _answer(text: str, passage: str, source: str = "notes.txt") -> Answer:
    found = Found(Passage(0, f"{source}#0", source, source, 0, passage), 1.0)
    spans = tuple(Tracer([(f"{source}#0", passage)]).spans(text))
    return Answer("question", (found,), Stats("trie"), text, spans)


def _turn(answer: Answer | None) -> StoredTurn:
    return StoredTurn(7, "notes", "question", answer)


def _shown(html: str) -> str:
    """What a browser shows of it, line breaks included."""
    return bs4.BeautifulSoup(html.replace("<br>", "\n"), "lxml").get_text()


def test_a_copied_span_is_a_mark_that_leads_to_its_place() -> None:
    html = answer_html(_answer("He said the cat sat down there.", "Once the cat sat down on it."), turn=4)
    mark = bs4.BeautifulSoup(html, "lxml").mark
    assert mark is not None
    assert mark.get_text() == "the cat sat down"
    assert (mark["data-do"], mark["data-turn"], mark["data-span"], mark["data-rank"]) == ("place", "4", "0", "1")


def test_text_around_spans_is_kept() -> None:
    html = answer_html(_answer("He said the cat sat down there.", "Once the cat sat down on it."), turn=1)
    answer = bs4.BeautifulSoup(html, "lxml").select_one(".qw-answer")
    assert answer is not None
    assert answer.get_text() == "He said the cat sat down there."


def test_copied_text_is_marked_inside_the_passage_once_where_spans_overlap() -> None:
    answer = _answer("", "one two three four five")
    spans = (Span(0, 13, "notes.txt#0", 0, 13), Span(14, 28, "notes.txt#0", 4, 18))
    answer = Answer("q", answer.passages, answer.stats, "one two three two three four", spans)
    marks = bs4.BeautifulSoup(passages_html([_turn(answer)]), "lxml").find_all("mark")
    assert [mark.get_text() for mark in marks] == ["one two three four"]


def test_the_latest_answers_passages_come_first() -> None:
    html = passages_html([_turn(_answer("", "older passage")), _turn(_answer("", "newer passage"))])
    assert html.index("newer passage") < html.index("older passage")


def test_a_hostile_file_name_stays_text_in_the_panel() -> None:
    name = "<img src=x onerror=alert(1)>.txt"
    html = passages_html([_turn(_answer("", "text", name))])
    assert bs4.BeautifulSoup(html, "lxml").img is None
    assert name in _shown(html)


def test_figures_and_the_reason_for_a_cut_are_shown_under_the_answer() -> None:
    stats = Stats("trie", new_tokens=21, forward_passes=11, decode_s=2.0, time_to_first_token_s=1.5, total_s=3.5)
    html = answer_html(Answer("q", (), stats, "text", (), "length"), turn=1)
    assert "Cut at the token limit." in _shown(html)
    assert "10.0 tokens/s · accept length 2.00 (trie)" in _shown(html)


def test_an_answer_that_is_not_kept_has_spans_that_lead_nowhere() -> None:
    mark = bs4.BeautifulSoup(answer_html(_answer("the cat sat down", "the cat sat down")), "lxml").mark
    assert mark is not None
    assert not mark.has_attr("tabindex")


def test_nothing_found_is_said_plainly_with_no_span() -> None:
    answer = Answer("q", (), Stats("trie"), "The documents do not say.", (), "nothing-found")
    reply = bs4.BeautifulSoup(answer_html(answer, 1), "lxml").select_one(".qw-nothing-found")
    assert reply is not None
    assert reply.get_text() == "The documents do not say."


def test_a_question_that_was_interrupted_says_so_and_can_be_asked_again() -> None:
    html = turn_html(_turn(None), last=True)
    assert "was not answered" in _shown(html)
    assert "Ask again" in _shown(html)


def test_only_the_last_answer_can_be_asked_again() -> None:
    assert "Ask again" not in _shown(turn_html(_turn(_answer("text", "text")), last=False))


def test_an_error_is_shown_in_the_answers_place() -> None:
    html = turn_html(_turn(None), last=True, error="the model is gone")
    assert "the model is gone" in _shown(html)
    assert "was not answered" not in _shown(html)
