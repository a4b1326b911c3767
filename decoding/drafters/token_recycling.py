"""Token recycling (Luo et al. 2024, "Turning trash into treasure"): a tree of the target's own former second thoughts.

An adjacency matrix holds, per token, the 8 likeliest next tokens when the target last read it, in an accepted node or
a rejected one (its sec. 3.2). A static tree says where to look: node (parent, rank) is the rank-th next token of its
parent's token; the root is the last token (sec. 3.1).

The paper found its tree by search. Here its shape follows from one line: the chance that the token of rank r is right,
`RANK_PROBS`; a node's value is the product along its path, and the 80 nodes of highest value are the tree. They come
best first, so that a smaller budget takes the first of them. Its widths per depth are 8, 21, 25, 19, 6, 1.

As in the paper the matrix is kept over answers: only `reset` drops it. So one drafter serves one person.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.growing_tree import GrowingTree
from decoding.tree import EMPTY, ROOT, DraftTree

NODES = 80
RANK_PROBS = (0.5, 0.18, 0.1, 0.065, 0.045, 0.035, 0.025, 0.02)


@functools.cache
def static_tree(nodes: int = NODES) -> tuple[tuple[int, int, float], ...]:
    """(parent, rank, value) of each node, best first; parents come first, for a product only falls."""
    heap = [(-prob, rank, ROOT) for rank, prob in enumerate(RANK_PROBS)]
    tree: list[tuple[int, int, float]] = []
    while len(tree) < nodes:
        negative, rank, parent = heapq.heappop(heap)
        for below, prob in enumerate(RANK_PROBS):
            heapq.heappush(heap, (negative * prob, below, len(tree)))
        tree.append((parent, rank, -negative))
    return tuple(tree)


class TokenRecyclingDrafter:
    """Learns from `Observation.likely` alone: from a replayed record, which has none, it learns nothing."""

    likely: ClassVar[int] = len(RANK_PROBS)

    def __init__(self, nodes: int = NODES) -> None:
        self.nodes = nodes
        self.reset()

    def start(self, request: DraftRequest) -> None:
        """Begin an answer; the matrix stays."""
        self._root: int | None = None

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The static tree, or its best `max_nodes` nodes, less the nodes of which nothing is known."""
        self._root = context[-1]
        if self._root not in self._next:
            return EMPTY
        grown = GrowingTree(max_nodes)
        places: dict[int, tuple[int, int]] = {ROOT: (ROOT, self._root)}  # static node: drafted node, its token
        for static, (parent, rank, value) in enumerate(static_tree(self.nodes)[: max(0, max_nodes)]):
            above = places.get(parent)
            following = () if above is None else self._next.get(above[1], ())
            if above is None or rank >= len(following):
                continue
            node = grown.add(above[0], following[rank], value)
            if node is not None:
                places[static] = node, following[rank]
        return grown.tree()

    def observe(self, observed: Observation) -> None:
        """Take over the likeliest tokens after every node; where a token stands twice, accepted nodes count."""
        root, self._root = self._root, observed.tokens[-1]
        if observed.likely is None or root is None:
            return
        tokens, likely = observed.tree.tokens.tolist(), observed.likely.tolist()
        rejected = sorted(set(range(len(tokens))) - set(observed.path))
        for node in rejected:
            self._learn(tokens[node], likely[node + 1])
        self._learn(root, likely[0])
        for node in observed.path:
            self._learn(tokens[node], likely[node + 1])

    def _learn(self, token: int, following: list[int]) -> None:
        self._next[token] = tuple(dict.fromkeys(following))[: self.likely]

    def reset(self) -> None:
        """Drop the matrix."""
        self._root = None
        self._next: dict[int, tuple[int, ...]] = {}
