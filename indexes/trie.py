"""The n-gram trie over references (ngram_trie sec. 3.1-3.2), expanded only where a lookup goes.

The paper slides a window of n tokens, splits each window into a prefix of L_p tokens and a suffix, and inserts
every sub-prefix followed by the suffix. So a node is a string that begins at some positions, and its
frequency is the number of (window, sub-prefix) pairs that hold it. Both follow from the positions alone:
the trie is never built, its nodes are lists of positions, and preparing it costs one pass over the tokens.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indexes.reference import GROWING, ReferenceIndex


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node of the candidate tree; `parent` is an index into the candidates, -1 for the matched node."""

    token: int
    parent: int
    prob: float
    source: int


class NgramTrie:
    """n is the gram length, prefix_length is L_p; 1 <= L_p < n."""

    def __init__(self, references: Sequence[Sequence[int]], n: int = 13, prefix_length: int = 3) -> None:
        if not 1 <= prefix_length < n:
            raise ValueError(f"prefix_length is {prefix_length}; it must be at least 1 and less than n = {n}")
        self.n = n
        self.prefix_length = prefix_length
        self._index = ReferenceIndex(references)

    def append(self, tokens: Iterable[int]) -> None:
        """Add the windows of a text that grows, such as the answer emitted so far; its source is -1."""
        self._index.append(tokens)

    def candidates(self, context: Sequence[int], max_nodes: int) -> list[Candidate]:
        """The `max_nodes` most frequent nodes below the longest match of the context's end, parents first.

        Tries the last L_p tokens, then ever fewer (sec. 3.2). Ties go to the shallower node, then to the one
        that stands first in the references.
        """
        for length in range(min(self.prefix_length, len(context)), 0, -1):
            starts = self._match(context[len(context) - length :])
            if found := self._pruned(starts, length, max_nodes):
                return found
        return []

    def _match(self, suffix: Sequence[int]) -> list[int]:
        """The positions at which `suffix` begins within one reference; the end of a growing one is not yet a place."""
        index, before = self._index, len(suffix) - 1
        tokens, starts, wanted = index.tokens, index.starts, list(suffix)
        newest = len(tokens) - 1 if index.owners and index.owners[-1] == GROWING else None
        return [
            last - before
            for last in index.positions.get(wanted[-1], ())
            if last - before >= starts[last] and last != newest and tokens[last - before : last + 1] == wanted
        ]

    def _frequency(self, begins: list[int], depth: int) -> int:
        """How often the paper's construction inserts the string of `depth` tokens beginning at `begins`.

        A window contains it, and its sub-prefix starts it, for 0 <= j < L_p, j tokens before it in the
        same reference, and depth + j <= n.
        """
        most, starts = min(self.prefix_length, self.n - depth + 1), self._index.starts
        return sum(min(most, begin - starts[begin] + 1) for begin in begins)

    def _children(self, begins: list[int], depth: int) -> dict[int, list[int]]:
        """Group the positions of a node of `depth` tokens by the token that follows."""
        tokens, ends = self._index.tokens, self._index.ends
        children: dict[int, list[int]] = {}
        if depth < self.n:
            for begin in begins:
                if begin + depth < min(ends[begin], len(tokens)):
                    children.setdefault(tokens[begin + depth], []).append(begin)
        return children

    def _pruned(self, begins: list[int], depth: int, max_nodes: int) -> list[Candidate]:
        """Best first by frequency: a parent is at least as frequent as its children, so it comes first."""
        if not begins:
            return []
        total = self._frequency(begins, depth)
        kept: list[Candidate] = []
        heap: list[tuple[int, int, int, int, list[int], int]] = []
        parent = -1
        while len(kept) < max_nodes:
            for token, positions in self._children(begins, depth).items():
                entry = (-self._frequency(positions, depth + 1), depth + 1, positions[0], token, positions, parent)
                heapq.heappush(heap, entry)
            if not heap:
                break
            frequency, depth, first, token, begins, above = heapq.heappop(heap)
            parent = len(kept)
            kept.append(Candidate(token, above, -frequency / total, self._index.owners[first]))
        return kept
