"""HTML: the words that a browser would show, and h1 to h6."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import bs4
from bs4.dammit import EncodingDetector
from bs4.element import PreformattedString

from retrieval.parsers.encodings import BOMS, refuse_binary
from retrieval.parsers.parsed import Mark, Parsed, respaced

HIDDEN = {"script", "style", "template", "noscript", "head"}
HEADINGS = {f"h{level}": level for level in range(1, 7)}
END = object()  # of a heading
BREAKS = (
    dict.fromkeys(("p", "pre", *HEADINGS, "table", "blockquote"), "\n\n")
    | dict.fromkeys(("div", "ul", "ol", "li", "dl", "dt", "dd", "tr", "br", "hr", "figure", "figcaption"), "\n")
    | dict.fromkeys(("section", "article", "header", "footer", "main", "nav", "aside", "address", "form"), "\n")
    | dict.fromkeys(("td", "th", "option"), " ")
)


def parse_html(data: bytes) -> Parsed:
    """A page in the encoding that it says, else in UTF-8, else in one that is guessed."""
    if not data.startswith(tuple(BOMS)):
        refuse_binary(data)
    if EncodingDetector.find_declared_encoding(data, is_html=True) is None:
        with contextlib.suppress(UnicodeDecodeError):  # of a few words, guesses are often wrong
            return parse_fragment(data.decode("utf-8-sig"))
    return parse_fragment(data)


def parse_fragment(html: str | bytes) -> Parsed:
    """The words of a page or of a piece of one, a line break around each block."""
    raw, marks = _walk(bs4.BeautifulSoup(html, "lxml"))
    lines = "\n".join(line.strip(" \t") for line in raw.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", lines).strip()
    return Parsed(text, marks=tuple(respaced(marks, raw, text)))


def _walk(soup: bs4.BeautifulSoup) -> tuple[str, list[Mark]]:
    """All text with breaks around blocks, and its headings; one inside another counts as its words."""
    pieces: list[str] = []
    marks: list[Mark] = []
    length = 0
    heading: tuple[int, int] | None = None  # the level and start of the one that the walk is in
    waiting: list[Any] = [soup]  # not recursive: pages may nest as deeply as they like
    while waiting:
        node = waiting.pop()
        if isinstance(node, bs4.Tag):
            if node.name in HIDDEN:
                continue
            around = BREAKS.get(node.name, "")
            begins = heading is None and node.name in HEADINGS
            if begins:
                heading = HEADINGS[node.name], length
            waiting.extend((around, *((END,) if begins else ()), *reversed(node.contents), around))
        elif node is END:
            if heading is not None:
                marks.append(Mark(*heading, length))
            heading = None
        elif not isinstance(node, PreformattedString):  # those are comments, declarations and their like
            pieces.append(node)
            length += len(node)
    return "".join(pieces), marks
