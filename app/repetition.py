"""Small models fall into loops: says where an answer begins to repeat itself, so that it can end there.

A pure function of the text, so a drafted and a plain answer end at the same character.
"""

from __future__ import annotations

import re

MIN_WORDS = 5

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def repetition_start(text: str) -> int | None:
    """Where the first sentence starts that stands in `text` before, word for word; None if there is none.

    Sentences of fewer than five words do not count, nor does the last one while nothing follows it.
    """
    seen: set[tuple[str, ...]] = set()
    start = 0
    for end in _SENTENCE_END.finditer(text):
        words = tuple(text[start : end.start()].split())
        if len(words) >= MIN_WORDS:
            if words in seen:
                return start
            seen.add(words)
        start = end.end()
    return None
