"""From a tree that a datastore holds to a draft tree."""

from __future__ import annotations

import numpy as np

from decoding.tree import EMPTY, NO_SOURCE, DraftTree, best_chain_first
from indexes.prefix_tree import TokenTree


def as_draft(tree: TokenTree, max_nodes: int) -> DraftTree:
    """The first `max_nodes` nodes, which are the likeliest, best chain first."""
    count = min(len(tree), max_nodes)
    if count < 1:
        return EMPTY
    sources = np.full(count, NO_SOURCE, np.int64)
    return best_chain_first(DraftTree(tree.tokens[:count], tree.parents[:count], tree.probs[:count], sources))
