"""REST (crest sec. 3.1; He et al. 2023): a tree of what followed the context's end in a corpus of past texts.

Knows nothing of the references of an answer: everything comes from the datastore, which is read and never written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.drafters.stored import as_draft
from decoding.tree import DraftTree
from indexes.suffix_array import RestStore


@dataclass(slots=True)
class RestDrafter:
    """The settings are the paper's (sec. 5.1): matches of `longest` to `shortest` tokens; `most` continuations of
    `depth` tokens.

    The `nodes` most frequent prefixes of these are drafted, or max_nodes if that is less.
    """

    store: RestStore
    longest: int = 16
    shortest: int = 2
    most: int = 5000
    depth: int = 10
    nodes: int = 64
    likely: ClassVar[int] = 0

    def start(self, request: DraftRequest) -> None:
        """Nothing to prepare."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The tree below the longest match. Raises DamagedIndexError for a store whose contents cannot be."""
        limit = min(self.nodes, max_nodes)
        _, tree = self.store.lookup(context, self.longest, self.shortest, self.most, self.depth, limit)
        return as_draft(tree, limit)

    def observe(self, observed: Observation) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to drop: the datastore is not learned from answers."""
