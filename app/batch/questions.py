"""One question of a data set: what is asked, what may be read, what is expected. Knows no data set's own form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum


class Reading(StrEnum):
    """Where a question's passages come from."""

    INDEX = "index"  # an index of the person's is searched
    GIVEN = "given"  # the passages came with the question and are read as they are
    SEARCHED = "searched"  # pages came with the question, too long to be read whole: the best pieces are read
    PROMPT = "prompt"  # the question is a whole prompt already


@dataclass(frozen=True, slots=True)
class Question:
    """`expected` holds every text that counts as the right answer; none for a question that is not scored.

    passages are (id, text) pairs. citations holds, for each recorded answer of HAGRID, the ids of the passages that
    its attributable sentences cite.
    """

    id: str
    text: str
    expected: tuple[str, ...] = ()
    passages: tuple[tuple[str, str], ...] = ()
    reading: Reading = Reading.INDEX
    unanswerable: bool = False
    citations: tuple[tuple[str, ...], ...] = ()

    @property
    def digest(self) -> str:
        """Changes with anything in the question: tells whether a resumed run still asks the same."""
        return hashlib.sha256(json.dumps(asdict(self)).encode("ascii")).hexdigest()[:16]
