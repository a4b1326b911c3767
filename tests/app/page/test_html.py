from __future__ import annotations

import re

import bs4
from hypothesis import given
from hypothesis import strategies as st

from app.page.html import attribute, button, error_html, escape, report_html, unwrapped


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


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_an_attribute_holds_the_text_as_it_is(text: str) -> None:
    element = bs4.BeautifulSoup(f'<p title="{attribute(text)}"></p>', "lxml").p
    assert element is not None
    assert element["title"] == text


def test_a_buttons_values_are_attributes() -> None:
    element = bs4.BeautifulSoup(button("Copy", "copy", "Copy it", text='"quoted"\ntwo'), "lxml").button
    assert element is not None
    assert (element.get_text(), element["data-do"], element["aria-label"]) == ("Copy", "copy", "Copy it")
    assert element["data-text"] == '"quoted"\ntwo'


def test_a_hostile_file_name_and_error_stay_text() -> None:
    name = "<img src=x onerror=alert(1)>.txt"
    for html in (report_html("1 documents", {name: "empty"}), error_html(name)):
        assert bs4.BeautifulSoup(html, "lxml").img is None
        assert name in _shown(html)


def test_lines_cut_at_a_width_flow_on_and_others_stay() -> None:
    wide = "This line was cut by a text editor because it was wide\nand goes on here.\nShort.\n\n   indented code"
    assert unwrapped(wide) == wide.replace("wide\nand", "wide and")


@given(st.text("ab \n-", max_size=300))
def test_flowing_lines_move_no_character(text: str) -> None:
    flowing = unwrapped(text)
    assert len(flowing) == len(text)
    assert flowing.replace("\n", " ") == text.replace("\n", " ")
