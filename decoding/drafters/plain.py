"""No drafting: every step is a plain one. The baseline of every table."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.drafter import DraftRequest
from decoding.tree import EMPTY, DraftTree


class PlainDrafter:
    """Always proposes the empty tree."""

    def start(self, request: DraftRequest) -> None:
        """Nothing to prepare."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The empty tree."""
        return EMPTY

    def observe(self, accepted: Sequence[int]) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to drop."""
