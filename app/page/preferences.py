"""What a person chooses for their own questions, as numbers and names that were checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine

DRAFTERS = {
    "blend": "blend: the best for most",
    "trie": "trie: copies from the passages",
    "suffix": "suffix: copies from passages and answer",
    "prompt-lookup": "prompt-lookup: copies after the last match",
    "llma": "llma: copies long runs",
    "token-recycling": "token-recycling: what followed before",
    "lookahead": "lookahead: the model's own guesses",
    "plain": "plain: one word at a time",
}
MOST = {"budget": 64, "temperature": 1.5, "top_k": 10, "length": 512}  # of what the sliders offer


@dataclass(frozen=True, slots=True)
class Chosen:
    """The values of the settings panel."""

    drafter: str
    budget: int
    temperature: float
    top_k: int
    length: int


def defaults(engine: Engine) -> Chosen:
    """What is chosen unless the person chooses otherwise."""
    settings = engine.settings
    return Chosen(
        settings.drafter, engine.max_nodes, settings.temperature, engine.profile.top_k, settings.max_new_tokens
    )


def drafters(engine: Engine) -> list[tuple[str, str]]:
    """The drafters to choose from, as (what they do, name) pairs, and the one that is set if it is another."""
    named = {engine.settings.drafter: engine.settings.drafter} | DRAFTERS
    return [(label, name) for name, label in named.items()]


def chosen(engine: Engine, kept: Mapping[str, Any]) -> Chosen:
    """What the person chose; what cannot be, or not any more, counts as not chosen."""
    usual = defaults(engine)
    names = [name for _, name in drafters(engine)]
    drafter = kept.get("drafter")
    return Chosen(
        drafter if drafter in names else usual.drafter,
        int(_within(kept.get("budget"), 0, max(MOST["budget"], usual.budget), usual.budget)),
        _within(kept.get("temperature"), 0, MOST["temperature"], usual.temperature),
        int(_within(kept.get("top_k"), 1, max(MOST["top_k"], usual.top_k), usual.top_k)),
        int(_within(kept.get("length"), 1, max(MOST["length"], usual.length), usual.length)),
    )


def _within(value: Any, least: float, most: float, usual: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and least <= value <= most else usual


def answer_options(engine: Engine, kept: Mapping[str, Any]) -> AnswerOptions:
    """The person's choices as the engine takes them; what is as set is left to the settings."""
    mine, usual = chosen(engine, kept), defaults(engine)
    sampling = None if mine.temperature == usual.temperature else replace(engine.sampling, temperature=mine.temperature)
    return AnswerOptions(
        drafter=mine.drafter,
        max_nodes=None if mine.budget == usual.budget else mine.budget,
        max_new_tokens=mine.length,
        top_k=mine.top_k,
        sampling=sampling or engine.sampling,
    )
