"""What a follow-up question is searched with: itself, the questions that it goes back to, and what was answered last.

A question that stands alone is searched alone, so a change of topic is not dragged back to the old one. Which ones
stand alone is told by their words, which are English: a question without words of its own ("why is that?"), one that
begins by going on ("and ..."), or a short one with a pronoun goes back. Knows no index and no model; the weights were
chosen on one half of benchmarks/followups.jsonl (docs/decisions/0018).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bm25s.stopwords import STOPWORDS_EN_PLUS

from retrieval.conversation import NOTHING_FOUND, Turn

TOPIC_WEIGHT = 0.4  # of the questions gone back to, when passages are scored; the question itself weighs 1
TOLD_WEIGHT = 0.25  # of what was answered last
TOLD_WORDS = 20  # of it, from its beginning: a long answer would outweigh the question
MOST_OWN_WORDS = 4  # of a question whose pronoun goes back; pronouns in longer ones mostly stay inside

FUNCTION_WORDS = frozenset(STOPWORDS_EN_PLUS)
GOING_ON = frozenset(("and", "but", "or", "so"))
PRONOUNS = frozenset({
    "it", "its", "itself", "they", "them", "their", "theirs", "that", "those", "this", "these", "one", "ones", "none",
    "he", "him", "his", "she", "her", "there", "then", "former", "latter", "other", "others", "else",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is searched: each of `queries` is looked up, and `scored` are texts with weights by which the
    passages found are scored. `whole` is the question with what it goes back to, in one text."""

    question: str
    queries: tuple[str, ...]
    scored: tuple[tuple[str, float], ...]
    whole: str


def alone(question: str) -> Asked:
    """The question and nothing else."""
    return Asked(question, (question,), ((question, 1.0),), question)


def in_context(question: str, turns: Sequence[Turn]) -> Asked:
    """The question after these turns, latest last."""
    if not turns or not goes_back(question):
        return alone(question)
    topic = " ".join(_topic(turns))
    last = turns[-1].answer
    told = "" if last == NOTHING_FOUND else " ".join(last.split()[:TOLD_WORDS])
    whole = f"{topic} {question}"
    if not told:
        return Asked(question, (question, whole), ((question, 1.0), (topic, TOPIC_WEIGHT)), whole)
    scored = ((question, 1.0), (topic, TOPIC_WEIGHT), (told, TOLD_WEIGHT))
    return Asked(question, (question, whole, f"{topic} {told} {question}"), scored, whole)


def goes_back(question: str) -> bool:
    """Whether the question means something that was said before it."""
    words = _words(question)
    own = own_words(question)
    if not own or words[0] in GOING_ON:
        return True
    return len(own) <= MOST_OWN_WORDS and not PRONOUNS.isdisjoint(words)


def own_words(text: str) -> list[str]:
    """The words of a text that mean something by themselves, in small letters."""
    return [word for word in _words(text) if word not in FUNCTION_WORDS and word not in PRONOUNS]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _topic(turns: Sequence[Turn]) -> list[str]:
    """The earlier questions from the latest one that stands alone on."""
    questions = [turn.question for turn in turns]
    start = next((place for place in range(len(questions) - 1, 0, -1) if not goes_back(questions[place])), 0)
    return questions[start:]
