"""Draft trees: flat arrays, and pure functions of them.

``parents`` is the only truth; depths, positions, masks and paths derive from it. The root (the last
emitted token) is not a node: its index is -1. Knows no model and no drafter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.errors import DraftTreeError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ROOT = -1
NO_SOURCE = -1


@dataclass(frozen=True, slots=True, eq=False)
class DraftTree:
    """A tree of draft tokens, parents before children; N = 0 means a plain step.

    tokens   (N,) token ids, not trusted: whoever verifies drops ids outside the vocabulary
    parents  (N,) index of each node's parent, -1 for a child of the root
    probs    (N,) the drafter's estimate that the node is accepted (path product), in [0, 1]
    sources  (N,) index of the reference that a node was copied from, -1 if none

    Raises DraftTreeError when an array is not flat or not of numbers as above, when the arrays differ in length,
    and when a parent does not come first.
    """

    tokens: Ints
    parents: Ints
    probs: Floats
    sources: Ints

    def __post_init__(self) -> None:
        for name, kinds in (("tokens", "iu"), ("parents", "iu"), ("probs", "f"), ("sources", "iu")):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype.kind not in kinds:
                wanted = "floats" if kinds == "f" else "integers"
                raise DraftTreeError(f"{name} must be a flat array of {wanted}, not {array.dtype} {array.shape}")
        lengths = {len(self.tokens), len(self.parents), len(self.probs), len(self.sources)}
        if len(lengths) != 1:
            raise DraftTreeError(f"the arrays of a draft tree must be equally long, not {sorted(lengths)}")
        late = np.flatnonzero((self.parents < ROOT) | (self.parents >= np.arange(len(self.parents))))
        if len(late):
            node = int(late[0])
            raise DraftTreeError(f"node {node} has parent {self.parents[node]}; allowed are -1 to {node - 1}")

    def __len__(self) -> int:
        return len(self.tokens)


def make_tree(
    tokens: Sequence[int],
    parents: Sequence[int],
    probs: Sequence[float] | None = None,
    sources: Sequence[int] | None = None,
) -> DraftTree:
    """Build a tree from plain sequences; missing probs are 1.0, missing sources -1."""
    count = len(tokens)
    return DraftTree(
        np.asarray(tokens, dtype=np.int64).reshape(count),
        np.asarray(parents, dtype=np.int64).reshape(len(parents)),
        np.ones(count) if probs is None else np.asarray(probs, dtype=np.float64),
        np.full(count, NO_SOURCE, np.int64) if sources is None else np.asarray(sources, dtype=np.int64),
    )


EMPTY = make_tree([], [])


def chain(tokens: Sequence[int], source: int = NO_SOURCE) -> DraftTree:
    """The tree with one path."""
    return make_tree(tokens, range(-1, len(tokens) - 1), sources=[source] * len(tokens))


def depths(tree: DraftTree) -> Ints:
    """(N,) the number of steps from the root: a child of the root has depth 1."""
    result = np.zeros(len(tree) + 1, np.int64)  # the root's depth sits at index -1
    for node, parent in enumerate(tree.parents.tolist()):
        result[node] = result[parent] + 1
    return result[: len(tree)]


def ancestor_mask(tree: DraftTree) -> Bools:
    """(N, N) row i is True at node i and at its ancestors: what node i may attend to."""
    mask = np.eye(len(tree), dtype=np.bool_)
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


def select(tree: DraftTree, keep: Iterable[int]) -> DraftTree:
    """The nodes `keep`, in that order; each one's parent must be kept, and come before it."""
    order = list(keep)
    renumbered = {ROOT: ROOT} | {old: new for new, old in enumerate(order)}
    return make_tree(
        tree.tokens[order].tolist(),
        [renumbered[int(parent)] for parent in tree.parents[order]],
        tree.probs[order].tolist(),
        tree.sources[order].tolist(),
    )


def limited(tree: DraftTree, max_nodes: int, max_depth: int, vocabulary: int) -> DraftTree:
    """Cut whatever a drafter may have drafted to what can be verified.

    Keeps the first `max_nodes` nodes (parents come first, so any prefix is a tree), then drops nodes
    deeper than `max_depth` or with an id outside [0, vocabulary), and all their descendants.
    """
    count = max(0, max_nodes)
    head = DraftTree(tree.tokens[:count], tree.parents[:count], tree.probs[:count], tree.sources[:count])
    valid = (head.tokens >= 0) & (head.tokens < vocabulary) & (depths(head) <= max_depth)
    if valid.all():
        return head
    kept: set[int] = {ROOT}
    for node, parent in enumerate(head.parents.tolist()):
        if valid[node] and parent in kept:
            kept.add(node)
    return select(head, sorted(kept - {ROOT}))


def best_chain_first(tree: DraftTree) -> DraftTree:
    """Reorder depth first, likeliest child first, so that the best chain is contiguous in the KV cache.

    Of children that are equally likely the one that came first stays first.
    """
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parents.tolist()):
        children.setdefault(parent, []).append(node)
    order: list[int] = []
    stack = [ROOT]
    while stack:
        node = stack.pop()
        if node != ROOT:
            order.append(node)
        stack.extend(sorted(children.get(node, ()), key=lambda child: (tree.probs[child], -child)))
    return tree if order == list(range(len(tree))) else select(tree, order)
