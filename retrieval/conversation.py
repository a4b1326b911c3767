"""What was said before in a conversation: the value that retrieval and prompts share."""

from __future__ import annotations

from dataclasses import dataclass

NOTHING_FOUND = "The documents do not say."  # the answer where no passage is about the question


@dataclass(frozen=True, slots=True)
class Turn:
    """A question asked earlier in the conversation, and what was answered."""

    question: str
    answer: str
