"""How many draft nodes to verify, chosen per step: the most expected tokens per second, no node at all included.

    b* = argmax over b of (1 + sum of the b largest survival probabilities) / (draft time + verify time of b nodes)

Survival probabilities never grow from parent to child, so the b likeliest nodes always form a tree. Verify times come
from `decoding.verify_costs`, survival from `decoding.acceptance`. Whatever is chosen, no token changes.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from decoding.acceptance import Acceptance
from decoding.tree import EMPTY, DraftTree, select
from decoding.verify_costs import VerifyTimes

START_GAIN = 1.03  # drafting is taken up again only for this gain in expected tokens per second over plain decoding
SWITCH_GAIN = 1.02  # and another number of nodes only for this gain over the last one
WASTE = 0.005  # share of the time that drafts which do not pay may cost
GAIN_RATE = 0.1  # weight of the newest draft in what drafting gains
FIRST_GAIN = 0.2  # what drafting is taken to gain before an answer has shown it
LONGEST_PAUSE = 64  # steps
DRAFTS_TIMED = 9
FIRST_ROOM, LEAST_ROOM = 16, 8  # nodes asked for at first, and at least: drafting more than could pay takes its time


class NodeBudget(Protocol):
    """Decides in the decode loop how much of each draft is verified. Called in this order, once per step."""

    def start(self) -> None:
        """A new answer begins."""

    def ask(self, max_nodes: int) -> int:
        """How many nodes the drafter should propose now, at most `max_nodes`; 0: it is not even asked."""

    def choose(self, proposed: DraftTree) -> DraftTree:
        """The part of the proposal to verify, in its order."""

    def observe(self, tokens: Sequence[int], draft_s: float, verify_s: float) -> None:
        """What the step emitted, and how long drafting and everything else in it took."""

    def reset(self) -> None:
        """Forget what all answers taught."""


class EveryNode:
    """The fixed budget: whatever is proposed, up to max_nodes, is verified."""

    def start(self) -> None:
        """Nothing to prepare."""

    def ask(self, max_nodes: int) -> int:
        """All."""
        return max_nodes

    def choose(self, proposed: DraftTree) -> DraftTree:
        """All."""
        return proposed

    def observe(self, tokens: Sequence[int], draft_s: float, verify_s: float) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to forget."""


EVERY_NODE = EveryNode()


class AdaptiveNodes:
    """The budget that pays. `times` belongs to a target model, `acceptance` to a drafter; both go on learning.

    Where drafting has not been worth its own time of late, it pauses: after each further draft that is not, twice as
    long as before, but no longer than brings the time lost down to half a per cent. A draft that pays ends the pauses.
    Drafts that are made and not verified still teach, by the tokens that plain decoding then emits.
    """

    def __init__(self, times: VerifyTimes, acceptance: Acceptance) -> None:
        self._times = times
        self._acceptance = acceptance
        self._draft_s: deque[float] = deque(maxlen=DRAFTS_TIMED)
        self._room = FIRST_ROOM
        self.start()

    def start(self) -> None:
        """A new answer begins: it is given the benefit of the doubt."""
        self._acceptance.start()
        self._previous = 0
        self._gain = FIRST_GAIN
        self._unpaid = 0
        self._pause = 0
        self._asked = False
        self._proposed, self._verified = EMPTY, 0

    def reset(self) -> None:
        """Forget what all answers taught."""
        self._times.reset()
        self._acceptance.reset()
        self._draft_s.clear()
        self._room = FIRST_ROOM
        self.start()

    def ask(self, max_nodes: int) -> int:
        """At most `max_nodes`: twice what has paid of late, or 0 in a pause."""
        self._asked = self._pause == 0
        self._pause = max(0, self._pause - 1)
        self._proposed, self._verified = EMPTY, 0
        return min(max_nodes, self._room) if self._asked else 0

    def choose(self, proposed: DraftTree) -> DraftTree:
        """The likeliest nodes, as many as pay."""
        if not self._asked:
            return EMPTY
        survival = self._acceptance.survival(proposed)
        order = sorted(range(len(proposed)), key=survival.__getitem__, reverse=True)  # stable: parents stay first
        expected = [1.0, *(1.0 + total for total in accumulate(survival[node] for node in order))]
        seconds = self._times.up_to(len(proposed))
        draft_s = statistics.median(self._draft_s or [0.0])
        count = self._best([tokens / (draft_s + cost) for tokens, cost in zip(expected, seconds, strict=True)])
        self._judge(expected[count] * seconds[0] / (draft_s + seconds[count]) - 1, draft_s / seconds[0])
        self._proposed, self._verified = proposed, count
        self._room = max(2 * count, self._room - 1, LEAST_ROOM)
        return proposed if count == len(proposed) else select(proposed, sorted(order[:count]))

    def _best(self, rates: list[float]) -> int:
        """The number of nodes with the highest rate (N + 1,), but the last one if that is almost as good."""
        best = max(range(len(rates)), key=rates.__getitem__)
        if len(rates) == 1:
            return 0  # nothing was proposed: that says nothing about the last number
        last = min(self._previous, len(rates) - 1)
        if last == 0:
            best = best if rates[best] >= START_GAIN * rates[0] else 0
        elif best > 0 and rates[0] <= rates[last] and rates[best] < SWITCH_GAIN * rates[last]:
            best = last
        if best != last or best == 0:
            self._previous = best
        return best

    def _judge(self, gain: float, draft_share: float) -> None:
        """Lengthen or end the pauses. `gain` is in tokens per second over never drafting, as a share of that;
        `draft_share` is the draft's time in forward passes."""
        self._gain += GAIN_RATE * (gain - self._gain)
        if gain > 0:
            self._unpaid = 0
        elif self._gain < 0:
            self._unpaid += 1
            affordable = math.ceil(draft_share / WASTE) - 1
            doubled = 2 ** min(self._unpaid - 1, LONGEST_PAUSE.bit_length())
            self._pause = max(0, min(doubled, affordable, LONGEST_PAUSE))

    def observe(self, tokens: Sequence[int], draft_s: float, verify_s: float) -> None:
        """Learn how much was right and how long it took."""
        self._times.observe(self._verified, verify_s)
        if self._asked:
            self._draft_s.append(draft_s)
        self._acceptance.observe(self._proposed, tokens)
