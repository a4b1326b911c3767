"""Where an answer ends by its text: before a stop text, or where a small model begins to repeat itself.

Pure functions of the text, so a drafted and a plain answer end at the same character. While more may come, what could
still be cut away is held back: a text that was shown is never taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MIN_WORDS = 5

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def settle(text: str, stop: Sequence[str], stop_repeats: bool, final: bool) -> tuple[str, str | None]:
    """The certain part of a text so far, and why the answer ends there: "stop", "repetition" or None.

    `final` says that nothing more will come.
    """
    text = text.lstrip() if final else text.lstrip().rstrip("\ufffd")  # a character may not be complete yet
    cut, reason = len(text), None
    if (stopped := min((text.find(end) for end in stop if end in text), default=None)) is not None:
        cut, reason = stopped, "stop"
    if stop_repeats and (repeated := repetition_start(text[:cut])) is not None:
        cut, reason = repeated, "repetition"
    if reason is None and not final:
        cut = min(_before_unfinished_stop(text, stop), _before_repeat(text) if stop_repeats else cut)
    return text[:cut].rstrip(), reason


def repetition_start(text: str) -> int | None:
    """Where the first sentence starts that stands in `text` before, word for word; None if there is none.

    Sentences of fewer than five words do not count, nor does the last one while nothing follows it.
    """
    seen: set[tuple[str, ...]] = set()
    for start, end, _ in _sentences(text):
        words = tuple(text[start:end].split())
        if len(words) >= MIN_WORDS:
            if words in seen:
                return start
            seen.add(words)
    return None


def _sentences(text: str) -> Iterator[tuple[int, int, int]]:
    """Where the complete sentences start and end, and where what follows starts."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield start, end.start(), end.end()
        start = end.end()


def _before_unfinished_stop(text: str, stop: Sequence[str]) -> int:
    """Where the longest end of `text` starts that may become a stop text."""
    longest = 0
    for end in stop:
        lengths = range(min(len(end) - 1, len(text)), longest, -1)
        longest = next((length for length in lengths if text.endswith(end[:length])), longest)
    return len(text) - longest


def _before_repeat(text: str) -> int:
    """Where the last sentence starts if it may become an earlier one again; else the end."""
    complete = list(_sentences(text))
    start = complete[-1][2] if complete else 0
    begun = " ".join(text[start:].split())
    earlier = (text[first:last].split() for first, last, _ in complete)
    repeats = any(len(words) >= MIN_WORDS and " ".join(words).startswith(begun) for words in earlier)
    return start if repeats else len(text)
