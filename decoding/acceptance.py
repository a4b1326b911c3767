"""How often drafts are really accepted: turns what a drafter states into survival probabilities, online.

Raw counts are no probabilities: a continuation that stands once in the references states 1.0, whatever matched. So
the truth is counted: of the children of a node that was reached, which one did the target choose? Counted by what was
stated (given the parent) and by how many tokens in a row drafts have got right so far, across steps, for a copy that
runs tends to run on. Over those counts lies one number per answer, the shift of all log-odds, which learns fast
whether this answer copies at all (the intercept of an online logistic regression).

The counts hold no words: they may be kept from one answer to the next, whoever asked. Knows neither drafters nor times.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from decoding.tree import ROOT, DraftTree

STATED = (0.05, 0.15, 0.3, 0.5, 0.75, 0.95)  # edges of the bins of stated probabilities
RUNS = (1, 2, 3, 5, 9)  # edges of the bins of tokens in a row
DOUBT = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95)  # before anything is counted: the share of what is stated that comes true
PRIOR_TRIALS = 10.0
MOST_TRIALS = 400.0  # then the counts are halved, so that they follow the texts
SHIFT_RATE = 0.25
LARGEST_SHIFT = 3.0
CERTAIN = 0.999


class Acceptance:
    """Counts per drafter. With `calibrated` the drafter's own figures are believed at first, else they are doubted."""

    def __init__(self, calibrated: bool = False) -> None:
        self._doubt = tuple(1.0 for _ in DOUBT) if calibrated else DOUBT
        self.reset()

    def reset(self) -> None:
        """Forget all counts."""
        bins = [(stated, run) for stated in range(len(STATED) + 1) for run in range(len(RUNS) + 1)]
        self._hits = dict.fromkeys(bins, 0.0)
        self._trials = dict.fromkeys(bins, 0.0)
        self.start()

    def start(self) -> None:
        """Begin a new answer: the counts stay."""
        self._shift = 0.0
        self.run = 0

    def chance(self, stated: float, run: int) -> float:
        """The probability that a node is right, given that its parent is.

        `stated` is what the drafter says of that, `run` how many tokens in a row were drafted right before it.
        """
        place = bisect_right(STATED, stated), bisect_right(RUNS, run)
        prior = PRIOR_TRIALS * stated * self._doubt[place[1]]
        share = min((self._hits[place] + prior) / (self._trials[place] + PRIOR_TRIALS), CERTAIN)
        odds = share / (1 - share) * math.exp(self._shift)
        return odds / (1 + odds)

    def survival(self, tree: DraftTree) -> list[float]:
        """(N,) the probability that each node is accepted; never larger than its parent's, whatever was stated."""
        found: list[float] = []
        runs: list[int] = []
        probs = tree.probs.tolist()
        for node, parent in enumerate(tree.parents.tolist()):
            run = self.run if parent == ROOT else runs[parent] + 1
            above = 1.0 if parent == ROOT else found[parent]
            runs.append(run)
            found.append(above * self.chance(_stated(probs, parent, node), run))
        return found

    def observe(self, tree: DraftTree, tokens: Sequence[int]) -> None:
        """Learn from a draft and the tokens emitted after it was made, verified or not: at least its first
        generation is decided by them."""
        children = _children(tree)
        probs, drafted = tree.probs.tolist(), tree.tokens.tolist()
        node = ROOT
        if ROOT not in children:
            self.run = 0
        for token in tokens:
            tried = children.get(node)
            if not tried:
                return  # the draft ended before the tokens did: they neither lengthen the run nor end it
            right = next((child for child in tried if drafted[child] == token), None)
            for child in tried:
                self._count(_stated(probs, node, child), child == right)
            if right is None:
                self.run = 0
                return
            self.run += 1
            node = right

    def _count(self, stated: float, hit: bool) -> None:
        self._shift += SHIFT_RATE * (hit - self.chance(stated, self.run))
        self._shift = max(-LARGEST_SHIFT, min(LARGEST_SHIFT, self._shift))
        place = bisect_right(STATED, stated), bisect_right(RUNS, self.run)
        self._hits[place] += hit
        self._trials[place] += 1
        if self._trials[place] > MOST_TRIALS:
            self._hits[place] /= 2
            self._trials[place] /= 2


def _stated(probs: Sequence[float], parent: int, child: int) -> float:
    """What the drafter says of a child given its parent; what is no probability counts as 0 or 1."""
    above = 1.0 if parent == ROOT else probs[parent]
    ratio = probs[child] / above if above > 0 else 0.0
    return min(max(ratio, 0.0), 1.0) if ratio == ratio else 0.0


def _children(tree: DraftTree) -> Mapping[int, list[int]]:
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parents.tolist()):
        children.setdefault(parent, []).append(node)
    return children
