"""What one forward pass of the target costs by the number of draft nodes in it: measured, then followed.

Kernels change with the number of rows, so the times are no smooth function of it, and not even a growing one: 4 rows
may be faster than 2. They are therefore taken as measured, neither fitted nor smoothed, and interpolated between.
Knows no drafter and no file; where measured times are kept is the caller's concern.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from decoding.choices import choose
from decoding.target import TargetModel
from decoding.tree import chain
from indexes.errors import SettingError

EDGES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
COARSE_FIRST = (0, 1, 8, 2, 16, 4, 32, 64)  # a model too slow to time everything gets these
LEAST_TIMED, LEAST_ROUNDS = 4, 2
CONTEXT_TOKENS = 512
ROUNDS = 15

PACE_RATE = 0.2  # weight of the newest pass in the machine's pace
BIAS_RATE = 0.05  # and in what sets a size apart from the others
FORGET = 0.995  # a size not seen for some hundred passes is believed to cost what was measured
DISTURBED = math.log(2)  # passes that are twice as fast as measured: the machine was busy then
SURPRISE = math.log(2)  # a pass counts as at most twice as slow, or fast, as expected


@dataclass(frozen=True, slots=True)
class VerifyCosts:
    """Seconds of a forward pass with `nodes` draft nodes: equally long, nodes ascending from 0.

    Raises SettingError for anything else, and for times that are not above zero.
    """

    nodes: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        ascending = all(before < after for before, after in pairwise(self.nodes))
        if not self.nodes or self.nodes[0] != 0 or not ascending:
            raise SettingError(f"nodes is {self.nodes}; it must ascend from 0")
        if len(self.seconds) != len(self.nodes) or not all(0 < second < math.inf for second in self.seconds):
            raise SettingError(f"seconds is {self.seconds}; it must hold {len(self.nodes)} times above zero")

    def at(self, nodes: int) -> float:
        """Seconds with this many nodes: between two measured sizes on the line through them, beyond the last one
        on the line from plain decoding through it."""
        right = bisect_right(self.nodes, nodes)
        if right < len(self.nodes):
            left = right - 1
        elif len(self.nodes) > 1:
            left, right = 0, len(self.nodes) - 1
        else:
            return self.seconds[0]
        share = (nodes - self.nodes[left]) / (self.nodes[right] - self.nodes[left])
        return max(self.seconds[left] + share * (self.seconds[right] - self.seconds[left]), min(self.seconds))


def measure_costs(
    target: TargetModel, max_nodes: int, limit_s: float = 3.0, clock: Callable[[], float] = time.perf_counter
) -> VerifyCosts:
    """Time forward passes over chains of up to `max_nodes` nodes: the fastest of some rounds, for noise only adds.

    A warm-up apart it ends after fifteen rounds, or after `limit_s` seconds and two rounds over a few sizes; sizes that
    were not reached then are left out, as are those beyond half of the model's context. What the target's cache held
    is lost.
    """
    most = max(0, min(max_nodes, EDGES[-1], target.context_limit // 2 - 1))
    wanted = [edge for edge in EDGES if edge < most] + [most]
    sizes = [size for size in COARSE_FIRST if size in wanted]
    sizes += [size for size in wanted if size not in sizes]
    context = min(CONTEXT_TOKENS, target.context_limit - most - 1)
    tokens = [7 * at % target.vocabulary for at in range(max(context, most))]
    target.prefill(tokens[:context])
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for size in {0, most}:
        _timed(target, tokens, size, context, clock)
    began = clock()
    for done in range(ROUNDS):
        for place, size in enumerate(sizes):
            if clock() - began > limit_s and (done >= LEAST_ROUNDS or place >= LEAST_TIMED):
                break
            times[size].append(_timed(target, tokens, size, context, clock))
    target.truncate(0)
    measured = sorted(size for size in sizes if times[size])
    return VerifyCosts(tuple(measured), tuple(min(times[size]) for size in measured))


def _timed(target: TargetModel, tokens: list[int], size: int, context: int, clock: Callable[[], float]) -> float:
    """Seconds of one pass over a chain, with the choice of tokens that makes it complete."""
    drafted = chain(tokens[:size])
    start = clock()
    choose(target.forward(tokens[0], drafted), drafted, tokens[:1])
    target.keep(())
    seconds = clock() - start
    target.truncate(context)
    return seconds


class VerifyTimes:
    """What a pass costs now: the measured costs times the machine's pace times what sets each size apart.

    A busy machine or a longer context slows every pass: the pace follows that within some ten passes, and as it is
    common to all sizes it makes none of them look dear. Only what remains counts for or against a single size.
    """

    def __init__(self, costs: VerifyCosts) -> None:
        self.costs = costs
        self.reset()

    def reset(self) -> None:
        """Believe the measurement again."""
        self._pace = 0.0
        self._bias = [0.0] * len(self.costs.nodes)

    @property
    def disturbed(self) -> bool:
        """Whether passes are so much faster now that the measurement must have been disturbed, and says little."""
        return self._pace < -DISTURBED

    def at(self, nodes: int) -> float:
        """Seconds of a pass with this many nodes."""
        return self.costs.at(nodes) * math.exp(self._pace + self._bias[self._bucket(nodes)])

    def up_to(self, nodes: int) -> list[float]:
        """Seconds of passes with 0 to `nodes` nodes."""
        return [self.at(count) for count in range(nodes + 1)]

    def observe(self, nodes: int, seconds: float) -> None:
        """Learn from a pass that took `seconds`."""
        if not seconds > 0:
            return  # a clock may stand still or be set back
        surprise = math.log(seconds / self.at(nodes))
        surprise = max(-SURPRISE, min(SURPRISE, surprise))
        self._pace += PACE_RATE * surprise
        self._bias = [FORGET * bias for bias in self._bias]
        self._bias[self._bucket(nodes)] += BIAS_RATE * surprise

    def _bucket(self, nodes: int) -> int:
        return bisect_right(self.costs.nodes, nodes) - 1
