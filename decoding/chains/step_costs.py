"""What a step of an engine costs, by its requests, their draft tokens and their context: learned from its own steps.

A ridge regression over the newest steps. Its prior is in shares of a plain step, so nothing need be known of the
machine, and it comes back where nothing was tried for some hundred steps: what once did not pay is tried again. Knows
neither requests nor engines.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from indexes.compiled import compiled

Floats = npt.NDArray[np.float64]

# a step; a request; a draft token; any draft token at all; a thousand tokens of context
PRIOR = (0.9, 0.05, 0.03, 0.05, 0.03)
PRIOR_STEPS = (1.0, 1.0, 10.0, 3.0, 1.0)  # how many observations it counts for
KEPT = 0.995  # of what was learned, per step
SURPRISE = 2.0  # a step counts as at most so much slower, or faster, than expected
FIRST_STEPS = 5  # which are believed as they are
PLAIN_STEPS = 2.0  # of what is kept, at least so many: else nobody knows what drafts cost


class StepCosts:
    """Seconds of a step with B requests, D draft tokens in all, and C tokens of context in all."""

    def __init__(self) -> None:
        self._products, self._sums = np.zeros((len(PRIOR), len(PRIOR))), np.zeros(len(PRIOR))
        self._seconds = self._expected = 0.0
        self._steps = 0
        self._weights: Floats = np.array(PRIOR)

    @property
    def known(self) -> bool:
        """Whether seconds are seconds, or as yet shares of a plain step."""
        return self._steps > 0

    @property
    def wants_plain(self) -> bool:
        """Whether the next step should have no drafts, for there is too little to compare with: about one in 100."""
        return bool(self._products[0, 0] - self._products[0, 3] < PLAIN_STEPS)

    def up_to(self, requests: int, drafted: int, context: int) -> Floats:
        """(drafted + 1,) seconds of a step with 0 to `drafted` draft tokens; never below a tenth of the plain one's."""
        rows = np.empty((drafted + 1, len(PRIOR)))
        rows[:, 0], rows[:, 1], rows[:, 4] = 1, requests, context / 1000
        rows[:, 2] = np.arange(drafted + 1)
        rows[:, 3] = rows[:, 2] > 0
        found = (rows * self._weights).sum(axis=1)  # not a matrix product: see _solve
        costs: Floats = np.maximum(found, max(found[0] / 10, 1e-9))
        return costs

    def observe(self, requests: int, drafted: int, context: int, seconds: float) -> None:
        """Learn from a step that took `seconds`."""
        if not seconds > 0:
            return  # a clock may stand still or be set back
        if self._steps >= FIRST_STEPS:
            expected = float(self.up_to(requests, drafted, context)[-1])
            seconds = min(max(seconds, expected / SURPRISE), expected * SURPRISE)
        row = np.array([1.0, requests, drafted, drafted > 0, context / 1000])
        self._steps += 1
        self._products = KEPT * self._products + np.outer(row, row)
        self._sums = KEPT * self._sums + row * seconds
        self._seconds = KEPT * self._seconds + seconds
        self._expected = KEPT * self._expected + float((row * PRIOR).sum())
        scale = self._seconds / self._expected  # seconds of a plain step, as far as the prior can tell
        self._weights[:] = _solve(
            self._products + np.diag(PRIOR_STEPS), self._sums + scale * np.multiply(PRIOR_STEPS, PRIOR)
        )


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
