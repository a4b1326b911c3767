"""The `Drafter` seam: token ids in, a draft tree out. Sees neither a model nor a tensor of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from decoding.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that the answer may copy from, as tokens.

    kind   "document" (a retrieved passage), "turn" (earlier in the conversation) or "question"
    label  what people call it, such as a passage's id
    """

    tokens: tuple[int, ...]
    kind: str = "document"
    label: str = ""


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What a drafter is told when an answer begins: the whole prompt, and the texts worth copying from."""

    prompt: tuple[int, ...]
    references: tuple[Reference, ...] = ()


class Drafter(Protocol):
    """Guesses ahead. A wrong guess costs time, never a token: the target model verifies every node."""

    def start(self, request: DraftRequest) -> None:
        """Forget the previous answer and prepare for a new one."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """Draft what follows `context`, all tokens emitted so far (at least one, never changed by the drafter)."""

    def observe(self, accepted: Sequence[int]) -> None:
        """Learn what a forward pass emitted: the accepted drafted tokens, then the bonus token."""

    def reset(self) -> None:
        """Drop everything learned, across answers too."""
