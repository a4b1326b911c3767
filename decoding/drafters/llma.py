"""LLMA (llma Algorithm 1): copy what follows the longest match of the output's end in a reference.

References are of the paper's three kinds: retrieved documents (and the question), earlier turns of the conversation,
and cached answers to similar questions. The paper breaks ties at random; here the first occurrence wins, in the order
of the references, unless a seed is given.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.tree import EMPTY, DraftTree, chain
from indexes.reference import ReferenceIndex


@dataclass(slots=True)
class LlmaDrafter:
    """match_length is the paper's n (least tokens that must match), copy_length its k (most tokens copied).

    tie_seed makes ties random, the same in every answer. kinds are the kinds of references that it copies from
    ("document", "question", "turn", "answer"); None means all.
    """

    likely: ClassVar[int] = 0
    match_length: int = 1
    copy_length: int = 18
    tie_seed: int | None = None
    kinds: frozenset[str] | None = None
    _ties: random.Random | None = None
    _index: ReferenceIndex = field(default_factory=lambda: ReferenceIndex([]))
    _places: list[int] = field(default_factory=list)
    _matches: dict[int, int] = field(default_factory=dict)
    _read: int = 0

    def start(self, request: DraftRequest) -> None:
        """Index the references of this answer."""
        self.reset()
        references = request.references
        self._places = [at for at, one in enumerate(references) if self.kinds is None or one.kind in self.kinds]
        self._index = ReferenceIndex([references[at].tokens for at in self._places])

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """A chain of up to k tokens."""
        for token in context[self._read :]:
            self._matches = self._index.extend_matches(self._matches, token)
        self._read = len(context)
        index = self._index
        open_ended = {at: length for at, length in self._matches.items() if at + 1 < index.ends[at]}
        longest = max(open_ended.values(), default=0)
        if longest < max(1, self.match_length):
            return EMPTY
        tied = [at for at, length in open_ended.items() if length == longest]
        at = self._ties.choice(tied) if self._ties else tied[0]
        end = min(at + 1 + min(self.copy_length, max_nodes), index.ends[at])
        return chain(index.tokens[at + 1 : end], self._places[index.owners[at]])

    def observe(self, observed: Observation) -> None:
        """Nothing to learn: `propose` reads the context."""

    def reset(self) -> None:
        """Forget references and matches, and begin the random choices anew."""
        self._ties = None if self.tie_seed is None else random.Random(self.tie_seed)
        self._index = ReferenceIndex([])
        self._places, self._matches, self._read = [], {}, 0
