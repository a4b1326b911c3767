"""A drafter that means harm: it knows the answer, and hides it in places that a careless verifier gets wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence

from decoding.drafter import DraftRequest, Observation
from decoding.tree import ROOT, DraftTree, make_tree

HOSTILE = "hostile"
LONGEST = 12  # right tokens in a row
DECOYS = 3  # siblings before each, at most


class HostileDrafter:
    """Drafts the answer's next tokens scattered among wrong siblings, twins, false endings and ids out of range.

    answer      the tokens of plain decoding
    vocabulary  V; ids at and beyond it are drafted too
    """

    likely = 0

    def __init__(self, answer: Sequence[int], vocabulary: int, seed: int = 0) -> None:
        self._answer = tuple(answer)
        self._vocabulary = vocabulary
        self._seed = seed
        self.reset()

    def start(self, request: DraftRequest) -> None:
        """Nothing to prepare."""

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """A tree of at most `max_nodes` nodes in which the right path lies scattered."""
        draw = self._random
        tokens: list[int] = []
        parents: list[int] = []
        parent = ROOT
        right = self._answer[len(context) : len(context) + draw.randint(0, LONGEST)]
        wrong = [draw.randrange(self._vocabulary + 2) for _ in range(draw.randint(0, 4))]
        for token in (*right, *wrong):
            for _ in range(draw.randint(0, DECOYS)):
                tokens.append(draw.choice([token + 1, token, draw.randrange(self._vocabulary), *self._answer[:3]]))
                parents.append(draw.choice([parent, *range(-1, len(tokens) - 1)]))
            tokens.append(token)
            parents.append(parent)
            parent = len(tokens) - 1
        return make_tree(tokens[:max_nodes], parents[:max_nodes])

    def observe(self, observed: Observation) -> None:
        """Learns nothing."""

    def reset(self) -> None:
        """Begin the same drafts again."""
        self._random = random.Random(self._seed)
