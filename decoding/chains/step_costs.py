"""What a step of an engine costs, by its requests, their draft tokens and their context: learned from its own steps.

A ridge regression over the newest steps, in which what a draft token costs may change with the rows of the step: the
first are often nearly free, for the weights are read anyway, and from some row on the processor has to work for each.
Its prior is in shares of a plain step, so nothing need be known of the machine, and it comes back where nothing was
tried for some hundred steps: what once did not pay is tried again. Knows neither requests nor engines.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from indexes.compiled import compiled

Floats = npt.NDArray[np.float64]

BENDS = (4, 8, 16, 32, 64, 128)  # rows, draft tokens included, from which on a draft token may cost more, or less
# a step; a request; a draft token; any draft token at all; a thousand tokens of context; a draft token beyond each bend
PRIOR = (0.9, 0.05, 0.03, 0.05, 0.03, *[0.0] * len(BENDS))
PRIOR_STEPS = (1.0, 1.0, 10.0, 3.0, 1.0, *[100.0] * len(BENDS))  # how many observations it counts for
KEPT = 0.995  # of what was learned, per step
_PRIOR, _PRIOR_STEPS = np.array(PRIOR), np.array(PRIOR_STEPS)
SURPRISE = 2.0  # times slower than expected: a hiccup, unless twice in a row; as much quicker refutes all before
PLAIN_STEPS = 2.0  # of what is kept, at least so many: else nobody knows what drafts cost


class StepCosts:
    """Seconds of a step with B requests, D draft tokens in all, and C tokens of context in all."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Know nothing but the prior."""
        self._products, self._sums = np.zeros((len(PRIOR), len(PRIOR))), np.zeros(len(PRIOR))
        self._seconds = self._expected = 0.0
        self._slow = False
        self._weights: Floats = np.array(PRIOR)

    @property
    def known(self) -> bool:
        """Whether seconds are seconds, or as yet shares of a plain step."""
        return self._expected > 0

    @property
    def wants_plain(self) -> bool:
        """Whether the next step should have no drafts, for there is too little to compare with: about one in 100."""
        return bool(self._products[0, 0] - self._products[0, 3] < PLAIN_STEPS)

    def up_to(self, requests: int, drafted: int, context: int) -> Floats:
        """(drafted + 1,) seconds of a step with 0 to `drafted` draft tokens; never below a tenth of the plain one's."""
        return _up_to(self._weights, requests, drafted, context)

    def observe(self, requests: int, drafted: int, context: int, seconds: float) -> None:
        """Learn from a step that took `seconds`."""
        if not seconds > 0:
            return  # a clock may stand still or be set back
        if self.known:  # many things make a step slow, a compilation or another process; nothing makes one quick
            expected = float(self.up_to(requests, drafted, context)[-1])
            if seconds < expected / SURPRISE:
                self.forget()
            slow, self._slow = self._slow, seconds > expected * SURPRISE
            if self._slow and not slow:
                seconds = expected * SURPRISE
        row = _features(requests, drafted, context)
        told = 0.001 if drafted else 1.0  # of how long a plain step is
        self._seconds = KEPT * self._seconds + told * seconds
        self._expected = KEPT * self._expected + told * float((row * _PRIOR).sum())
        scale = self._seconds / self._expected  # seconds of a plain step, as far as the prior can tell
        _learn(self._products, self._sums, self._weights, row, seconds, scale)


@compiled()
def _features(requests: int, drafted: int, context: int) -> Floats:
    """What a step's cost is linear in, in the order of PRIOR."""
    row = np.empty(5 + len(BENDS))
    row[0], row[1], row[2], row[3], row[4] = 1.0, requests, drafted, drafted > 0, context / 1000
    for bend in range(len(BENDS)):
        row[5 + bend] = max(0, drafted - max(0, BENDS[bend] - requests))
    return row


@compiled()
def _up_to(weights: Floats, requests: int, drafted: int, context: int) -> Floats:
    """StepCosts.up_to. More tokens are never quicker."""
    costs = np.empty(drafted + 1)
    for count in range(drafted + 1):
        costs[count] = (_features(requests, count, context) * weights).sum()  # not a product of matrices: see _solve
        costs[count] = max(costs[count], costs[count - 1] if count > 1 else max(costs[0] / 10, 1e-9))
    return costs


@compiled()
def _solve(matrix: Floats, right: Floats) -> Floats:
    """x of matrix x = right, for a positive definite matrix; both are overwritten.

    Not numpy's, whose library may start threads that spin on after their work, on the cores of the engine's own.
    """
    count = len(right)
    for pivot in range(count):
        for row in range(pivot + 1, count):
            share = matrix[row, pivot] / matrix[pivot, pivot]
            matrix[row] -= share * matrix[pivot]
            right[row] -= share * right[pivot]
    for row in range(count - 1, -1, -1):
        for column in range(row + 1, count):
            right[row] -= matrix[row, column] * right[column]
        right[row] /= matrix[row, row]
    return right


@compiled()
def _learn(products: Floats, sums: Floats, weights: Floats, row: Floats, seconds: float, scale: float) -> None:
    """Take in one step; `scale` is what the prior counts in."""
    matrix, right = np.empty_like(products), np.empty_like(sums)
    for one in range(len(row)):
        for other in range(len(row)):
            products[one, other] = KEPT * products[one, other] + row[one] * row[other]
            matrix[one, other] = products[one, other]
        sums[one] = KEPT * sums[one] + row[one] * seconds
        matrix[one, one] += _PRIOR_STEPS[one]
        right[one] = sums[one] + scale * _PRIOR_STEPS[one] * _PRIOR[one]
    weights[:] = _solve(matrix, right)
