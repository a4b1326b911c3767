"""Drafters that mean harm, and one that knows the answer up to a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from hypothesis import strategies as st

from decoding.drafter import DraftRequest, Observation
from decoding.tree import EMPTY, DraftTree, make_tree
from tests.decoding.tiny import VOCABULARY


@dataclass
class TreesDrafter:
    """Proposes the given trees in turn, whatever was asked for."""

    likely: ClassVar[int] = 0
    trees: Sequence[DraftTree]
    asked: int = 0

    def start(self, request: DraftRequest) -> None:
        self.asked = 0

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        self.asked += 1
        return self.trees[self.asked % len(self.trees)] if self.trees else EMPTY

    def observe(self, observed: Observation) -> None:
        """Learns nothing."""

    def reset(self) -> None:
        """Knows nothing."""


@dataclass(frozen=True)
class Oracle:
    """The shape of an oracle's draft: `right` true tokens in a row, then `wrong` false ones, among decoys.

    `decoys` false siblings stand before each true node, `twins` says whether each true node is drafted twice.
    """

    right: int
    wrong: int
    decoys: int
    twins: bool

    def tree(self, future: Sequence[int]) -> DraftTree:
        tokens: list[int] = []
        parents: list[int] = []
        parent = -1
        for depth, token in enumerate(future[: self.right + self.wrong]):
            drafted = token if depth < self.right else (token + 1) % VOCABULARY
            for decoy in range(self.decoys):
                tokens.append((token + 2 + decoy) % VOCABULARY)
                parents.append(parent)
            tokens.append(drafted)
            parents.append(parent)
            true = len(tokens) - 1
            if self.twins:
                tokens.append(drafted)
                parents.append(parent)
            parent = true
        return make_tree(tokens, parents)


@dataclass
class OracleDrafter:
    """Knows the answer; each draft has the next of the given shapes."""

    likely: ClassVar[int] = 0
    answer: Sequence[int]
    shapes: Sequence[Oracle]
    asked: int = 0

    def start(self, request: DraftRequest) -> None:
        self.asked = 0

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        self.asked += 1
        return self.shapes[self.asked % len(self.shapes)].tree(self.answer[len(context) :])

    def observe(self, observed: Observation) -> None:
        """Learns nothing."""

    def reset(self) -> None:
        """Knows nothing."""


@dataclass
class FailingDrafter:
    """Right at first, and then fails in the named way when asked for the `after`-th time."""

    likely: ClassVar[int] = 0
    answer: Sequence[int]
    way: str
    after: int = 3
    asked: int = field(default=0)

    def start(self, request: DraftRequest) -> None:
        if self.way == "start raises":
            raise RuntimeError("no start")

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        self.asked += 1
        if self.asked < self.after:
            return Oracle(2, 1, 1, False).tree(self.answer[len(context) :])
        return self._fail(context)

    def _fail(self, context: Sequence[int]) -> DraftTree:
        if self.way == "arrays of different lengths":
            return make_tree([1, 2, 3], [-1, 0])
        if self.way == "parent after child":
            return make_tree([1, 2], [1, -1])
        if self.way == "parent below the root":
            return make_tree([1], [-2])
        if self.way == "tokens that are no integers":
            return DraftTree(np.array([1.5]), np.array([-1]), np.ones(1), np.array([-1]))
        if self.way == "no tree":
            return cast(DraftTree, None)
        if self.way == "something else":
            return cast(DraftTree, [1, 2, 3])
        if self.way == "changes the context":
            cast(list[Any], context).append(1)
        return EMPTY

    def observe(self, observed: Observation) -> None:
        if self.way == "observe raises" and self.asked >= self.after:
            raise ZeroDivisionError("no thanks")

    def reset(self) -> None:
        """Knows nothing."""


FAILURES = (
    "start raises",
    "arrays of different lengths",
    "parent after child",
    "parent below the root",
    "tokens that are no integers",
    "no tree",
    "something else",
    "changes the context",
    "observe raises",
)


@st.composite
def trees(draw: st.DrawFn, max_size: int = 24, margin: int = 4) -> DraftTree:
    """Any tree: ids outside the vocabulary, duplicate siblings and deep chains among them."""
    size = draw(st.integers(0, max_size))
    parents = [draw(st.one_of(st.just(at - 1), st.integers(-1, at - 1))) for at in range(size)]
    ids = st.one_of(st.integers(-margin, VOCABULARY + margin), st.just(2**62), st.just(-(2**62)))
    return make_tree(draw(st.lists(ids, min_size=size, max_size=size)), parents)


oracles = st.builds(
    Oracle, right=st.integers(0, 8), wrong=st.integers(0, 3), decoys=st.integers(0, 2), twins=st.booleans()
)
