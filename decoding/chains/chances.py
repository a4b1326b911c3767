"""How likely a copied token is right, by its kind: counted as the engine runs, for all requests together.

Over the counts lies one number per request, the shift of all log-odds, which learns fast whether this answer copies
at all. The counts hold no words: they may be kept from one answer to the next, whoever asked. Knows no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from decoding.chains.copying import KINDS

Floats = npt.NDArray[np.float64]

# Before anything is counted: what came true in SmolLM2's answers to llma_rag, llma_cnndm and two parts of Spec-Bench
# that no figure is reported on (docs/lab-notes.md), smoothed by a logistic regression on length and support.
PRIOR = (
    0.32, 0.62, 0.25, 0.14,  0.48, 0.76, 0.39, 0.24,  0.64, 0.86, 0.56, 0.38,  0.69, 0.89, 0.61, 0.43,
    0.73, 0.90, 0.66, 0.49,  0.85, 0.95, 0.80, 0.65,  0.85, 0.95, 0.80, 0.66,  0.95, 0.98, 0.93, 0.86,
)  # fmt: skip
PRIOR_TRIALS = 10.0
MOST_TRIALS = 400.0  # then the counts are halved, so that they follow the texts
SHIFT_RATE = 0.1
LARGEST_SHIFT = 3.0
CERTAIN = 0.999


class Chances:
    """The counts that all requests share."""

    def __init__(self) -> None:
        self._hits = PRIOR_TRIALS * np.asarray(PRIOR)
        self._trials = np.full(KINDS, PRIOR_TRIALS)

    def shifted(self, shift: float) -> Floats:
        """(KINDS,) the chance of each kind in a request whose log-odds are shifted."""
        share = np.minimum(self._hits / self._trials, CERTAIN)
        odds = share / (1 - share) * np.exp(shift)
        chances: Floats = odds / (1 + odds)
        return chances

    def count(self, kind: int, hit: bool) -> None:
        """Learn from one token whose predecessors were right."""
        self._hits[kind] += hit
        self._trials[kind] += 1
        if self._trials[kind] > MOST_TRIALS:
            self._hits[kind] /= 2
            self._trials[kind] /= 2


class RequestChances:
    """What is known of one request: its shift, and the last chain made for it."""

    def __init__(self, shared: Chances) -> None:
        self._shared = shared
        self._shift = 0.0
        self._chain: Sequence[int] = ()
        self._kinds: Sequence[int] = ()

    def now(self) -> Floats:
        """(KINDS,) the chance of each kind."""
        self._chances = self._shared.shifted(self._shift)
        return self._chances

    def made(self, chain: Sequence[int], kinds: Sequence[int]) -> None:
        """Note a chain, verified or not: the tokens that come next judge it."""
        self._chain, self._kinds = chain, kinds

    def observe(self, tokens: Sequence[int]) -> None:
        """Learn from the tokens that came after the last chain was made."""
        for token, drafted, kind in zip(tokens, self._chain, self._kinds, strict=False):
            hit = bool(token == drafted)
            self._shift += SHIFT_RATE * (hit - float(self._chances[kind]))
            self._shift = max(-LARGEST_SHIFT, min(LARGEST_SHIFT, self._shift))
            self._shared.count(kind, hit)
            if not hit:
                break
        self._chain, self._kinds = (), ()
