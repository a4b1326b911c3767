"""A draft model and a target that follow a rule, for drafters that learn from either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from decoding.drafter import Drafter, DraftRequest, Observation
from decoding.tree import DraftTree, limited
from decoding.verify import verify
from tests.decoding.tiny import VOCABULARY

Rule = Callable[[tuple[int, ...]], int]


def counting(text: tuple[int, ...]) -> int:
    """One more than the last token."""
    return (text[-1] + 1) % VOCABULARY


def paths(tree: DraftTree) -> list[tuple[int, ...]]:
    """The tokens from the root to each node."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found


def ruled_choices(rule: Rule, text: Sequence[int], tree: DraftTree) -> list[int]:
    """(N + 1,) what the rule says after the text and after each node."""
    return [rule((*text, *path)) for path in [(), *paths(tree)]]


@dataclass
class RuledDraftModel:
    """A `DraftModel` that follows a rule; the next likeliest tokens are the rule's plus 1, 2 and so on."""

    rule: Rule = counting
    vocabulary: int = VOCABULARY
    context_limit: int = 10_000
    texts: list[tuple[int, ...]] = field(default_factory=list)

    def choices(self, text: Sequence[int], tree: DraftTree) -> list[int]:
        self.texts.append(tuple(text))
        return ruled_choices(self.rule, text, tree)

    def next_tokens(self, text: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        self.texts.append(tuple(text))
        first = self.rule(tuple(text))
        return [(first + rank) % self.vocabulary for rank in range(count)], [0.5 ** (rank + 1) for rank in range(count)]

    def reset(self) -> None:
        self.texts = []


def observed(rule: Rule, text: Sequence[int], tree: DraftTree, likely: int = 0) -> Observation:
    """What a pass of a target that follows the rule shows; its likeliest are the rule's token plus 0, 1, 2, ..."""
    choices = ruled_choices(rule, text, tree)
    verified = verify(tree, choices)
    table = (np.array(choices)[:, None] + np.arange(likely)) % VOCABULARY if likely else None
    return Observation(tree, verified.path, verified.tokens, tuple(choices), table)


def answered(
    drafter: Drafter, prompt: Sequence[int], passes: int, max_nodes: int, rule: Rule = counting, max_depth: int = 99
) -> list[Observation]:
    """Answer a prompt with a target that follows the rule, as the decode loop would; one observation per pass."""
    drafter.start(DraftRequest(tuple(prompt)))
    context = [rule(tuple(prompt))]
    seen: list[Observation] = []
    for _ in range(passes):
        tree = limited(drafter.propose(tuple(context), max_nodes), max_nodes, max_depth, VOCABULARY)
        shown = observed(rule, [*prompt, *context], tree, drafter.likely)
        drafter.observe(shown)
        context += shown.tokens
        seen.append(shown)
    return seen
