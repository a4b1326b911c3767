"""CREST (crest sec. 4): the stored token tree of the longest stored n-gram that the context ends with.

With `grow` (not in the paper) a tree is grown from its nodes' own n-grams: the children of each node are those that
the datastore holds below the longest match of context and path, best first by the product of their shares. So a
datastore with few and flat trees drafts as deep as one with many; trees of one level are grown if nothing else is said.
Knows nothing of the references of an answer.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.drafters.stored import as_draft
from decoding.tree import DraftTree, best_chain_first, make_tree
from indexes.crest import CrestStore


@dataclass(slots=True)
class CrestDrafter:
    """A grown tree has `depth` levels at most; one that is not grown is as it was stored.

    Without a value for `grow` a tree is grown if the stored ones have one level.
    """

    store: CrestStore
    grow: bool | None = None
    depth: int = 10
    likely: ClassVar[int] = 0

    def start(self, request: DraftRequest) -> None:
        """Nothing to prepare."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The tree of the longest match. Raises DamagedIndexError for a store whose contents cannot be."""
        if self.store.depth == 1 if self.grow is None else self.grow:
            return self._grown(tuple(context[max(0, len(context) - self.store.max_ngram) :]), max_nodes)
        return as_draft(self.store.lookup(context)[1], max_nodes)

    def _grown(self, context: tuple[int, ...], max_nodes: int) -> DraftTree:
        tokens: list[int] = []
        parents: list[int] = []
        probs: list[float] = []
        heap: list[tuple[float, int, int, int, tuple[int, ...]]] = []  # -prob, order of finding, token, parent, path
        found = 0
        path: tuple[int, ...] = ()
        prob, parent = 1.0, -1
        while len(tokens) < max_nodes:
            if len(path) < self.depth:
                children = self.store.lookup(context + path)[1]
                for node in (children.parents == -1).nonzero()[0].tolist():
                    token = int(children.tokens[node])
                    entry = (-prob * float(children.probs[node]), found, token, parent, (*path, token))
                    heapq.heappush(heap, entry)
                    found += 1
            if not heap:
                break
            prob, _, token, above, path = heapq.heappop(heap)
            prob, parent = -prob, len(tokens)
            tokens.append(token)
            parents.append(above)
            probs.append(prob)
        return best_chain_first(make_tree(tokens, parents, probs))

    def observe(self, observed: Observation) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to drop: the datastore is not learned from answers."""
