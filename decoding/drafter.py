"""The `Drafter` seam: token ids in, a draft tree out. Sees neither a model nor a tensor of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from decoding.tree import DraftTree, Ints


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that the answer may copy from, as tokens.

    kind   "document" (a retrieved passage), "turn" (earlier in the conversation), "question", or "answer" (to a
           similar question, from a cache)
    label  what people call it, such as a passage's id
    score  how relevant it is to the question; higher is better, 0.0 where nobody has judged it
    """

    tokens: tuple[int, ...]
    kind: str = "document"
    label: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What a drafter is told when an answer begins: the whole prompt, and the texts worth copying from."""

    prompt: tuple[int, ...]
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What one forward pass of the target showed.

    tree     the draft as it was verified (N nodes), which may be less than was proposed
    path     its accepted nodes, from the root downwards
    tokens   what was emitted: the accepted nodes' tokens, then the bonus token
    choices  (N + 1,) the target's own next token after the root, then after each node; on the accepted path they are
             `tokens`, off it the likeliest ones. None where the target's words are replayed from a record
    likely   (N + 1, K) the target's K likeliest next tokens, likeliest first; None unless the drafter asked
    """

    tree: DraftTree
    path: tuple[int, ...]
    tokens: tuple[int, ...]
    choices: tuple[int, ...] | None = None
    likely: Ints | None = None


class Drafter(Protocol):
    """Guesses ahead. A wrong guess costs time, never a token: the target model verifies every node."""

    @property
    def likely(self) -> int:
        """How many of the target's likeliest tokens per node `observe` wants to see; 0 costs nothing."""

    def start(self, request: DraftRequest) -> None:
        """Forget the previous answer and prepare for a new one."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """Draft what follows `context`, all tokens emitted so far (at least one, never changed by the drafter)."""

    def observe(self, observed: Observation) -> None:
        """Learn from a forward pass. Called after each but the prefill."""

    def reset(self) -> None:
        """Drop everything learned, across answers too."""
