"""Growing a draft tree token by token, and finding its nodes again in the tree that was verified.

A token is never drafted twice below one node: drafts that begin alike share their first nodes, as in a trie.
Knows no drafter and no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from decoding.tree import ROOT, DraftTree, make_tree

Children = Mapping[tuple[int, int], int]


class GrowingTree:
    """A tree of at most `max_nodes` nodes. A node's prob is never above its parent's."""

    def __init__(self, max_nodes: int) -> None:
        self.max_nodes = max_nodes
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._probs: list[float] = []
        self._children: dict[tuple[int, int], int] = {}

    @property
    def room(self) -> int:
        """How many nodes more it takes."""
        return max(0, self.max_nodes - len(self._tokens))

    def add(self, parent: int, token: int, prob: float = 1.0) -> int | None:
        """The child of `parent` with this token, added if it is not there; None if there is no room."""
        known = self._children.get((parent, token))
        if known is not None or not self.room:
            return known
        node = self._children[parent, token] = len(self._tokens)
        self._tokens.append(token)
        self._parents.append(parent)
        self._probs.append(prob if parent == ROOT else min(prob, self._probs[parent]))
        return node

    def add_chain(self, parent: int, tokens: Iterable[int], prob: float = 1.0, decay: float = 1.0) -> int:
        """Add tokens one below the other, each `decay` times as likely; returns the last node that fitted."""
        for token in tokens:
            node = self.add(parent, token, prob)
            if node is None:
                break
            parent, prob = node, prob * decay
        return parent

    def tree(self) -> DraftTree:
        """What has grown so far."""
        return make_tree(self._tokens, self._parents, self._probs)


def children_of(tree: DraftTree) -> Children:
    """(parent, token) -> node."""
    pairs = zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)
    return {pair: node for node, pair in reversed(list(enumerate(pairs)))}


def follow(children: Children, node: int, tokens: Iterable[int]) -> list[int]:
    """The nodes of `tokens` below `node`, as far as the tree has them: a draft may have been cut."""
    path: list[int] = []
    for token in tokens:
        found = children.get((node, token))
        if found is None:
            break
        path.append(node := found)
    return path
