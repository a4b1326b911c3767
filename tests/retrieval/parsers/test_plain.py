"""Titles that a text shows by lines of signs below them."""

from __future__ import annotations

import pytest

from retrieval.parsers.plain import underlined


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Top\n===\n", ["Top"]),
        ("Top\n==\n", []),  # shorter than the title
        ("Top\r\n===\r\n\r\ntext", ["Top"]),
        ("a line\nTop\n===\n", []),  # a paragraph's last line
        ("  Top\n=====\n", []),  # indented
        ("===\nTop\n===\n", ["Top"]),
        ("-----\n=====\n", []),
        ("==== ====\na    b\n==== ====\n", []),  # a table
        ("Top\n=-=\n", []),
        ("Top\n___\n", []),
    ],
)
def test_a_title_is_a_line_with_a_line_of_one_sign_below(text: str, titles: list[str]) -> None:
    assert [text[mark.start : mark.end] for mark in underlined(text)] == titles


def test_the_levels_of_signs_are_in_the_order_of_their_first_use() -> None:
    text = "A\n***\n\nB\n===\n\nC\n***\n\n===\nD\n===\n\nE\n---\n"
    assert [mark.level for mark in underlined(text)] == [1, 2, 1, 3, 4]
