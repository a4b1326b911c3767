"""SuffixDecoding (Oliaro et al. 2024, arXiv 2411.04975): expand the likeliest continuations of the best match.

Two suffix trees, as in the paper: one of this answer (its references, then its own words so far), one of earlier
answers. For every match length p of the context's end, a tree is expanded greedily from the match: a node's estimate
is D(child) = D(parent) * count(child) / count(parent), at most alpha * p + beta nodes are kept, and none
whose estimate is below a floor. The tree with the greatest sum of estimates is drafted. The suffix trees are not
built: their nodes are lists of positions, as in indexes/trie.py.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.tree import EMPTY, DraftTree, best_chain_first, make_tree
from indexes.reference import ReferenceIndex

Nodes = list[tuple[int, int, float, int]]  # token, parent, estimate, position
TUNED = (4.0, 32.0, 0.05)  # alpha, beta, floor: the best of a grid on recorded answers (docs/lab-notes.md)


@dataclass(slots=True)
class _Matches:
    """A text index and the positions at which the context's end matches, with the lengths of the matches."""

    index: ReferenceIndex
    lengths: dict[int, int] = field(default_factory=dict)

    def read(self, token: int) -> None:
        self.lengths = self.index.extend_matches(self.lengths, token)

    def by_length(self) -> list[tuple[int, list[int]]]:
        """(p, positions that match at least p tokens) for each p at which fewer match p + 1, longest first.

        A shorter length with the same positions has the same continuations and a lower limit.
        """
        steps: dict[int, list[int]] = {}
        for position, length in self.lengths.items():
            steps.setdefault(length, []).append(position)
        found: list[int] = []
        result = []
        for length in sorted(steps, reverse=True):
            found = sorted(found + steps[length])
            result.append((length, found))
        return result


@dataclass(slots=True)
class SuffixTreeDrafter:
    """alpha, beta and floor bound a tree as above; `remember` is how many earlier answers are searched too.

    The defaults of alpha, beta and floor are those of the authors' code (ArcticInference, as vLLM runs it) with its
    trees switched on; they draft little: 2.9 nodes per step where there is room for 32. TUNED drafts as much as there
    is room for. Remembering is off by default: an answer then depends on its own request alone, in speed as well as
    in words.
    """

    alpha: float = 1.0
    beta: float = 0.0
    floor: float = 0.1
    remember: int = 0
    likely: ClassVar[int] = 0
    _answers: deque[tuple[int, ...]] = field(default_factory=deque)
    _local: _Matches = field(default_factory=lambda: _Matches(ReferenceIndex([])))
    _earlier: _Matches = field(default_factory=lambda: _Matches(ReferenceIndex([])))
    _emitted: tuple[int, ...] = ()
    _read: int = 0

    def start(self, request: DraftRequest) -> None:
        """Index the references of this answer, and remember the answer before it."""
        if self._emitted and self.remember > 0:
            self._answers.append(self._emitted)
            while len(self._answers) > self.remember:
                self._answers.popleft()
        self._emitted, self._read = (), 0
        self._local = _Matches(ReferenceIndex([reference.tokens for reference in request.references]))
        self._earlier = _Matches(ReferenceIndex(list(self._answers)))

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The tree with the best score, over both suffix trees and all match lengths."""
        for token in context[self._read :]:
            self._local.index.append([token])
            self._local.read(token)
            self._earlier.read(token)
            self._local.lengths.pop(len(self._local.index.tokens) - 1, None)  # the end itself is no match of it
        self._read, self._emitted = len(context), tuple(context)
        best: Nodes = []
        best_score, sources = 0.0, self._local.index.owners
        for matches, owners in ((self._local, self._local.index.owners), (self._earlier, [])):
            for length, positions in matches.by_length():
                limit = min(max_nodes, int(self.alpha * length + self.beta))
                nodes = self._expanded(matches.index, positions, limit)
                score = sum(estimate for _, _, estimate, _ in nodes)
                if score > best_score:
                    best, best_score, sources = nodes, score, owners
        return self._tree(best, sources)

    def _expanded(self, index: ReferenceIndex, positions: list[int], limit: int) -> Nodes:
        """Up to `limit` nodes below a match that ends at `positions`, by estimate, then by first position."""
        tokens, ends, newest = index.tokens, index.ends, len(index.tokens)
        kept: Nodes = []
        heap: list[tuple[float, int, int, list[int], int, int]] = []
        estimate, depth, parent = 1.0, 1, -1
        while len(kept) < limit:
            children: dict[int, list[int]] = {}
            for position in positions:
                if position + depth < min(ends[position], newest):
                    children.setdefault(tokens[position + depth], []).append(position)
            for token, below in children.items():
                share = estimate * len(below) / len(positions)
                if share >= self.floor:
                    heapq.heappush(heap, (-share, below[0], token, below, depth + 1, parent))
            if not heap:
                break
            estimate, first, token, positions, depth, above = heapq.heappop(heap)
            estimate, parent = -estimate, len(kept)
            kept.append((token, above, estimate, first))
        return kept

    def _tree(self, nodes: Nodes, owners: list[int]) -> DraftTree:
        if not nodes:
            return EMPTY
        tokens, parents, estimates, positions = zip(*nodes, strict=True)
        sources = [owners[position] if owners else -1 for position in positions]
        return best_chain_first(make_tree(tokens, parents, estimates, sources))

    def observe(self, observed: Observation) -> None:
        """Keep the answer's words up to date, for when it is over."""
        self._emitted += observed.tokens

    def reset(self) -> None:
        """Forget references, matches and earlier answers."""
        self._answers.clear()
        self._local, self._earlier = _Matches(ReferenceIndex([])), _Matches(ReferenceIndex([]))
        self._emitted, self._read = (), 0
