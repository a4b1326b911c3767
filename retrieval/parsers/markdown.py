"""Markdown: its words without its marks, a blank line between blocks; headings of both styles."""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from retrieval.parsers.encodings import decode
from retrieval.parsers.html import HEADINGS, parse_fragment
from retrieval.parsers.parsed import Parsed, block, joined

MAX_NESTING = 100  # of blocks; deeper ones are left out
SHOWN = ("text", "code_inline", "softbreak", "hardbreak", "image")


def parse_markdown(data: bytes) -> Parsed:
    """CommonMark with tables."""
    tokens = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table").parse(decode(data))
    return joined(_blocks(tokens))


def _blocks(tokens: list[Token]) -> Iterator[Parsed]:
    level = None
    for token in tokens:
        if token.type == "inline":
            shown = (child for child in token.children or [] if child.type in SHOWN)
            yield block("".join(child.content if child.content else "\n" for child in shown), level)
        elif token.type in ("fence", "code_block"):
            yield block(token.content.rstrip("\n"))
        elif token.type == "html_block":
            yield parse_fragment(token.content)
        level = HEADINGS[token.tag] if token.type == "heading_open" else None
