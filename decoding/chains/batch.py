"""Drafts for all requests of a step, together as long as pays.

    D* = argmax over D of (B + sum of the D largest survivals of all chains) / (draft time + step time of D)

as in decoding/budget.py, over B requests: survival falls along a chain, so the D likeliest tokens are the beginnings
of the chains, and busy steps leave less for each request, none where none pays.

Engines name no requests here. A request is who its text is: its state belongs to the row that begins with all the
tokens it has read, whichever row that is. State that no row of a step continues is dropped, so requests that ended,
were aborted or preempted leave none; one that comes back is read anew. Nothing is kept from one request for another
but counts without words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from decoding.chains.chances import Chances, RequestChances
from decoding.chains.copying import ROOM, copied_chain
from decoding.chains.step_costs import StepCosts
from indexes.context_matches import ContextMatches, append, empty_matches

Ints = npt.NDArray[np.int32]
Lengths = npt.NDArray[np.integer[Any]]
Clock = Callable[[], float]

SPACE = 512  # tokens of output that a text has space for at first
START_GAIN = 1.03  # what drafting must promise over not drafting, as in decoding/budget.py
MARGIN = 0.4  # dearer than thought drafts are taken to be, for those that look best were judged too well most often
WASTE = 0.005  # share of the time that looking for drafts may cost where none pay
PATIENCE = 8  # steps in a row in which no draft paid, before there is a pause
LONGEST_PAUSE = 64  # steps


@dataclass(slots=True)
class _Request:
    """What has been read of one request, and what was made of it last."""

    text: ContextMatches
    chances: RequestChances
    length: int = 0
    drafted: int = 0
    chain: list[int] = field(default_factory=list)
    survival: list[float] = field(default_factory=list)

    def continues(self, row: Ints, length: int) -> bool:
        return self.length <= length and np.array_equal(self.text.tokens[: self.length], row[: self.length])

    def read(self, row: Ints, length: int) -> None:
        if length > len(self.text.previous):
            self.text, self.length = empty_matches(length + max(length, SPACE), ROOM), 0
        append(self.text, row[self.length : length])
        self.length = length

    def draft(self, most: int, floor: float) -> None:
        tokens, kinds, survival = copied_chain(self.text, self.chances.now(), most, floor)
        self.chain, self.survival = tokens.tolist(), survival.tolist()
        self.chances.made(self.chain, kinds.tolist())


class BatchDrafter:
    """One per engine. `most_tokens` is the longest chain (at most ROOM), `longest_text` the model's context."""

    def __init__(
        self,
        most_tokens: int,
        longest_text: int,
        costs: StepCosts | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._most, self._longest, self._clock = min(most_tokens, ROOM), longest_text, clock
        self._chances, self._costs = Chances(), costs or StepCosts()
        self._requests: list[_Request] = []
        self._ended: float | None = None
        self._pause = self._fruitless = 0
        self._draft_s = 0.0

    def __len__(self) -> int:
        """Requests that have state."""
        return len(self._requests)

    def propose(self, sampled: Sequence[Sequence[int]], lengths: Lengths, rows: Ints) -> list[list[int]]:
        """A chain for each of R rows, after a step of the engine; empty where none pays.

        sampled  what the step emitted for each row; nothing while its prompt is not read to its end
        lengths  (>= R,) tokens of each row, those in `sampled` included
        rows     (>= R, T) the tokens of prompt and output
        """
        began = self._clock()
        live = [row for row, tokens in enumerate(sampled) if len(tokens)]
        known, fresh = self._recognise(live, lengths, rows)
        context = int(lengths[live].sum()) if live else 0
        if self._ended is not None and live and not fresh and len(live) == len(sampled):
            drafted = sum(request.drafted for request in known.values())
            self._costs.observe(len(live), drafted, context, began - self._ended)
        for request in known.values():
            request.drafted = 0
        chains: list[list[int]] = [[] for _ in sampled]
        if self._pause:
            self._pause -= 1
        elif live:
            self._draft(known, lengths, rows, context)
            for row, request in known.items():
                chains[row] = request.chain[: request.drafted]
            self._draft_s += 0.2 * (self._clock() - began - self._draft_s)
        self._ended = self._clock()
        return chains

    def _recognise(self, live: Sequence[int], lengths: Lengths, rows: Ints) -> tuple[dict[int, _Request], bool]:
        """The state of each row, and whether any is new; rows mostly stay where they are."""
        left, known, fresh = list(self._requests), {}, False
        for row in live:
            length = int(lengths[row])
            likely = [*left[row : row + 1], *left[:row], *left[row + 1 :]]
            found = next((one for one in likely if one.continues(rows[row], length)), None)
            if found is None:
                found, fresh = _Request(empty_matches(length + SPACE, ROOM), RequestChances(self._chances)), True
            else:
                left = [one for one in left if one is not found]
            known[row] = found
        self._requests = list(known.values())
        return known, fresh

    def _draft(self, known: dict[int, _Request], lengths: Lengths, rows: Ints, context: int) -> None:
        _, one, two = self._costs.up_to(len(known), 2, context)
        floor = max(0.01, 0.5 * len(known) * (two - one) / one)
        for row, request in known.items():
            length = int(lengths[row])
            request.chances.observe(rows[row, request.length : length].tolist())
            request.read(rows[row], length)
            request.draft(max(0, min(self._most, self._longest - length - 1)), floor)
        self._share_out(list(known.values()), context)

    def _share_out(self, requests: Sequence[_Request], context: int) -> None:
        """Give each request the part of its chain that pays, and pause where no chain does."""
        offers = sorted(((-chance, at) for at, one in enumerate(requests) for chance in one.survival))
        expected = len(requests) + np.concatenate([[0.0], np.cumsum([-chance for chance, _ in offers])])
        seconds = self._costs.up_to(len(requests), len(offers), context)
        seconds += MARGIN * (seconds - seconds[0])
        own = self._draft_s if self._costs.known else 0.0
        rates = expected / (seconds + own)
        best = int(np.argmax(rates))
        if self._costs.wants_plain:
            best = 0
        elif rates[best] < START_GAIN * rates[0]:
            best = 0
            self._fruitless += 1
            if self._fruitless >= PATIENCE:
                self._pause = max(0, min(LONGEST_PAUSE, math.ceil(own / seconds[0] / WASTE)) - 1)
        else:
            self._fruitless = 0
        for _, at in offers[:best]:
            requests[at].drafted += 1
