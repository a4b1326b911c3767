"""No drafting: every step is a plain one. The baseline of every table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.tree import EMPTY, DraftTree


class PlainDrafter:
    """Always proposes the empty tree."""

    likely: ClassVar[int] = 0

    def start(self, request: DraftRequest) -> None:
        """Nothing to prepare."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The empty tree."""
        return EMPTY

    def observe(self, observed: Observation) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to drop."""
