from __future__ import annotations

import re

import bs4
from hypothesis import given
from hypothesis import strategies as st

from app.answers import Answer, Stats
from app.page.html import answer_html, escape, passages_html, report_html
from app.spans import Span, Tracer
from indexes.passages import Passage
from retrieval.finder import Found


def _answer(text: str, passage: str, source: str = "notes.txt") -> Answer:
    found = Found(Passage(0, f"{source}#0", source, source, 0, passage), 1.0)
    spans = tuple(Tracer([(f"{source}#0", passage)]).spans(text))
    return Answer("question", (found,), Stats("trie"), text, spans)


def _shown(html: str) -> str:
    """What a browser shows of it, line breaks included."""
    return bs4.BeautifulSoup(html.replace("<br>", "\n"), "lxml").get_text()


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    assert _shown(f"<p>{escape(text)}</p>") == text


@given(st.text())
def test_escaped_text_holds_no_markup_of_html_markdown_latex_or_templates(text: str) -> None:
    assert not set(re.sub(r"&#\d+;|<br>", "", escape(text))) & set("<>&\"'`*_[](){}$\\#|!~=+-./:")


def test_a_line_break_is_shown_as_one() -> None:
    assert escape("one\r\ntwo\nthree") == "one<br>two<br>three"


def test_control_characters_become_the_replacement_character() -> None:
    assert escape("a\x00b\x1b") == "a&#65533;b&#65533;"


def test_a_copied_span_is_a_mark_that_names_its_turn_and_passage() -> None:
    html = answer_html(_answer("He said the cat sat down there.", "Once the cat sat down on it."), turn=4)
    mark = bs4.BeautifulSoup(html, "lxml").mark
    assert mark is not None
    assert mark.get_text() == "the cat sat down"
    assert "qw-t4-p1" in mark["class"]


def test_text_around_spans_is_kept() -> None:
    html = answer_html(_answer("He said the cat sat down there.", "Once the cat sat down on it."), turn=0)
    answer = bs4.BeautifulSoup(html, "lxml").select_one(".qw-answer")
    assert answer is not None
    assert answer.get_text() == "He said the cat sat down there."


def test_copied_text_is_marked_inside_the_passage_once_where_spans_overlap() -> None:
    answer = _answer("", "one two three four five")
    spans = (Span(0, 13, "notes.txt#0", 0, 13), Span(14, 28, "notes.txt#0", 4, 18))
    answer = Answer("q", answer.passages, answer.stats, "one two three two three four", spans)
    marks = bs4.BeautifulSoup(passages_html([answer]), "lxml").find_all("mark")
    assert [mark.get_text() for mark in marks] == ["one two three four"]


def test_the_latest_answers_passages_come_first() -> None:
    html = passages_html([_answer("", "older passage"), _answer("", "newer passage")])
    assert html.index("newer passage") < html.index("older passage")


def test_a_hostile_file_name_stays_text_in_the_panel_and_in_the_report() -> None:
    name = "<img src=x onerror=alert(1)>.txt"
    for html in (passages_html([_answer("", "text", name)]), report_html("1 documents", {name: "empty"})):
        assert bs4.BeautifulSoup(html, "lxml").img is None
        assert name in _shown(html)


def test_figures_and_the_reason_for_a_cut_are_shown_under_the_answer() -> None:
    stats = Stats("trie", new_tokens=21, forward_passes=11, decode_s=2.0, time_to_first_token_s=1.5, total_s=3.5)
    html = answer_html(Answer("q", (), stats, "text", (), "length"), turn=0)
    assert "Cut at the token limit." in _shown(html)
    assert "10.0 tokens/s · accept length 2.00 (trie)" in _shown(html)
