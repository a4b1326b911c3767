"""Sampling: a draw from the target's distribution as a function of (logits, seed, position).

The target's distribution is what transformers' own processors and warpers make of its logits, in the order of its
`generate`. A token is drawn with noise that depends on the seed and on the absolute position of the token (prompt and
answer counted) alone. So a draft cannot change a token: the token after a node is the one that plain decoding would
draw there, and verification only looks whether it was drafted. That is the exact rule for drafts that are no random
draws: draw x at the node, descend if x is a child, else emit x and stop. All nodes of one depth may share one noise,
since at most one of them lies on the path.

The draw is Gumbel-max: the argmax of log p + Gumbel noise is a draw from p. Passes over one row and over a tree differ
in the last bits of the logits, and Gumbel-max changes its token only where the best two sums nearly tie, whatever V;
a draw by inverse CDF would move every boundary between two tokens. It is made in two stages, first a block of tokens
and then a token of the block, so a position needs 2 sqrt(V) noise numbers and not V.

Knows neither models nor trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from decoding.tree import Floats
from indexes.errors import SettingError

NO_TOKEN = -1
MAX_SEED = 2**64 - 1
LEAST_UNIFORM = 2.0**-54  # half of the least positive number that numpy draws; keeps the noise finite


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the target's words are chosen; the names and meanings are those of transformers' `generate`.

    temperature         0 is greedy (the other filters then have nothing to do); else 0.01 to 100
    top_p               keep the likeliest tokens that make up this share of the probability; 1 keeps all
    top_k               keep this many tokens; 0 keeps all
    min_p               keep tokens at least this share as likely as the likeliest; 0 keeps all
    repetition_penalty  divides positive and multiplies negative logits of tokens that stand in the prompt or the
                        answer so far, greedy or not; 1 is none; 0.01 to 100
    seed                the same seed gives the same answer; 0 to 2^64 - 1

    Raises SettingError for any other value, NaN among them.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature != 0:
            self._check("temperature", 0.01, 100, "0 (greedy), or 0.01 to 100")
        self._check("top_p", 0, 1, "0 to 1 (keeps every token)")
        self._check("min_p", 0, 1, "0 (keeps every token) to 1")
        self._check("repetition_penalty", 0.01, 100, "0.01 to 100, 1 for none")
        self._check("top_k", 0, math.inf, "whole numbers: 0 (keeps every token) or more", int)
        self._check("seed", 0, MAX_SEED, f"whole numbers from 0 to {MAX_SEED}", int)

    def _check(self, name: str, low: float, high: float, allowed: str, kind: type[Any] = float) -> None:
        value: Any = getattr(self, name)
        if not isinstance(value, (kind, int)) or not low <= value <= high:
            raise SettingError(f"sampling's {name} is {value!r}; allowed are {allowed}")

    @property
    def greedy(self) -> bool:
        """Whether the target's likeliest token is chosen."""
        return self.temperature == 0


GREEDY = Sampling()


def warped(logits: torch.Tensor, before: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Logits (R, V) as transformers' `generate` would sample from them: (R, V) in float32 or better.

    `before` (R, L) are the tokens before each row, each at least once; (R, 0) where nothing depends on them.
    """
    scores = logits.to(torch.promote_types(torch.float32, logits.dtype))
    steps: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = []
    if sampling.repetition_penalty != 1:
        steps.append(RepetitionPenaltyLogitsProcessor(float(sampling.repetition_penalty)))
    if not sampling.greedy:
        steps.append(TemperatureLogitsWarper(float(sampling.temperature)))
        if sampling.top_k:
            steps.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            steps.append(TopPLogitsWarper(sampling.top_p))
        if sampling.min_p:
            steps.append(MinPLogitsWarper(sampling.min_p))
    for step in steps:
        scores = step(before, scores)
    return scores


def noise_width(vocabulary: int) -> int:
    """sqrt(V), rounded up: how many blocks of how many tokens a draw is made of."""
    return math.isqrt(max(0, vocabulary - 1)) + 1


def noise(seed: int, position: int, count: int, width: int) -> Floats:
    """(count, 2, width) Gumbel noise for the tokens at `position` and the positions after it.

    Philox is a counter-based generator: the noise of a position depends on the seed, the position and the width, and
    not on what was drawn before.
    """
    blocks = -(-2 * width // 4)  # Philox makes four numbers at a time
    stream = np.random.Philox(key=np.array([seed, 0], np.uint64))
    stream.advance(position * blocks)
    uniform = np.random.Generator(stream).random((count, 4 * blocks))[:, : 2 * width]
    return -np.log(-np.log(np.maximum(uniform, LEAST_UNIFORM))).reshape(count, 2, width)


def draw(scores: torch.Tensor, gumbel: torch.Tensor) -> torch.Tensor:
    """Draw from softmax(scores): (R,) token ids for scores (R, V) and noise (R, 2, noise_width(V)).

    A row whose largest score is not a finite number holds no distribution and gets NO_TOKEN.
    """
    rows, vocabulary = scores.shape
    width = gumbel.shape[-1]
    padded = torch.nn.functional.pad(scores, (0, width * width - vocabulary), value=-math.inf)
    grid = padded.view(rows, width, width)
    block = (grid.logsumexp(-1) + gumbel[:, 0]).argmax(-1)
    inside = (grid[torch.arange(rows, device=scores.device), block] + gumbel[:, 1]).argmax(-1)
    return torch.where(scores.amax(-1).isfinite(), block * width + inside, NO_TOKEN)
