"""Plain text, and the headings that a text shows by lines of signs below them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from retrieval.parsers.encodings import decode
from retrieval.parsers.parsed import Mark, Parsed

UNDERLINED = re.compile(r"^(?P<title>\S.*)\n(?P<line>([^\w\s])\3{2,})[ \t\r]*$", re.MULTILINE)
LINE = re.compile(r"([^\w\s])\1*\s*")


def parse_plain(data: bytes) -> Parsed:
    """A text as it stands, with plain line ends."""
    return Parsed(decode(data).replace("\r\n", "\n"))


def underlined(text: str) -> Iterator[Mark]:
    """The lines with a line of one sign below that is as long, as in reStructuredText; a sign's level is its first use.

    A line of signs above the title belongs to the sign. Other text must not touch it.
    """
    levels: dict[str, int] = {}
    for match in UNDERLINED.finditer(text):
        title, line = match["title"].rstrip(), match["line"]
        above = text[text.rfind("\n", 0, max(0, match.start() - 1)) + 1 : match.start()].strip()
        over = above == line
        if len(line) >= len(title) and not LINE.fullmatch(title) and (over or not above):
            level = levels.setdefault(f"{line[0]}{over}", len(levels) + 1)
            yield Mark(level, match.start(), match.start() + len(title))
