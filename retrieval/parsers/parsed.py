"""What a parser gives: a text, the character at which each page starts, and where its headings stand.

Does not know kinds of files. Headings are marked by place, so that a title is by construction what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from indexes.passages import Heading

MAX_TITLE = 200  # characters that are kept of a heading: some pages are all heading


@dataclass(frozen=True, slots=True)
class Mark:
    """A heading stands at text[start:end]; the lower its level, the more lies below it."""

    level: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text, the characters at which its pages start (none: it has no pages), and its headings in order."""

    text: str
    page_starts: tuple[int, ...] = ()
    marks: tuple[Mark, ...] = ()


def block(text: str, level: int | None = None) -> Parsed:
    """A block of text, which is a heading if it has a level."""
    return Parsed(text, marks=() if level is None else (Mark(level, 0, len(text)),))


def joined(blocks: Iterable[Parsed]) -> Parsed:
    """Blocks with a blank line between, those without words left out."""
    texts: list[str] = []
    marks: list[Mark] = []
    position = 0
    for item in blocks:
        if item.text.strip():
            texts.append(item.text)
            marks.extend(moved(item.marks, position))
            position += len(item.text) + 2
    return Parsed("\n\n".join(texts), marks=tuple(marks))


def moved(marks: Iterable[Mark], by: int) -> Iterable[Mark]:
    """The marks in a text that has `by` more characters before them."""
    return (Mark(mark.level, mark.start + by, mark.end + by) for mark in marks)


def respaced(marks: Iterable[Mark], before: str, after: str) -> list[Mark]:
    """The marks of one text in another that has the same words in other white space; words are marked whole."""
    trimmed = _trimmed(before, marks)
    wanted = {edge for mark in trimmed for edge in (mark.start, mark.end)}
    places: dict[int, int] = {}
    if wanted:
        for word, same in zip(re.finditer(r"\S+", before), re.finditer(r"\S+", after), strict=True):
            if word.start() in wanted:
                places[word.start()] = same.start()
            if word.end() in wanted:
                places[word.end()] = same.end()
    return [Mark(mark.level, places[mark.start], places[mark.end]) for mark in trimmed]


def headings_of(text: str, marks: Iterable[Mark]) -> tuple[Heading, ...]:
    """The marked headings in order, long ones cut."""
    trimmed = sorted(_trimmed(text, marks), key=lambda mark: mark.start)
    return tuple(
        Heading(mark.level, text[mark.start : min(mark.end, mark.start + MAX_TITLE)].rstrip(), mark.start)
        for mark in trimmed
    )


def _trimmed(text: str, marks: Iterable[Mark]) -> list[Mark]:
    """The marks without the white space at their ends, those of nothing else left out."""
    found = []
    for mark in marks:
        words = text[mark.start : mark.end]
        if words.strip():
            blanks = len(words) - len(words.lstrip()), len(words) - len(words.rstrip())
            found.append(Mark(mark.level, mark.start + blanks[0], mark.end - blanks[1]))
    return found
