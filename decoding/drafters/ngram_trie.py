"""The n-gram trie drafter (ngram_trie sec. 3): the candidate tree below the match of the last L_p tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.tree import DraftTree, best_chain_first, make_tree
from indexes.trie import NgramTrie


class NgramTrieDrafter:
    """n and prefix_length (L_p) are the paper's; its best are 13 and 3 (Table 2).

    With `output` (not in the paper) the answer emitted so far is one more reference, which grows: small models repeat
    themselves, and so do lists. Its last tokens have nothing after them, so the context's end never finds itself.
    """

    likely: ClassVar[int] = 0

    def __init__(self, n: int = 13, prefix_length: int = 3, output: bool = True) -> None:
        self.n = n
        self.prefix_length = prefix_length
        self.output = output
        self.reset()

    def start(self, request: DraftRequest) -> None:
        """Index the references of this answer."""
        references = [reference.tokens for reference in request.references]
        self._read = 0
        self._trie = NgramTrie(references, self.n, self.prefix_length)

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The most frequent continuations of the context's end, as one tree."""
        if self.output:
            self._trie.append(context[self._read :])
            self._read = len(context)
        found = self._trie.candidates(context, max_nodes)
        return best_chain_first(
            make_tree(
                [node.token for node in found],
                [node.parent for node in found],
                [node.prob for node in found],
                [node.source for node in found],
            )
        )

    def observe(self, observed: Observation) -> None:
        """Nothing to learn: `propose` reads the context."""

    def reset(self) -> None:
        """Drop the trie."""
        self._read = 0
        self._trie = NgramTrie([], self.n, self.prefix_length)
