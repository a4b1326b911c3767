"""The target's next token after each row of its logits: the likeliest, or a draw.

Knows where a row stands (its position and the tokens before it); how a token is drawn there is the concern of
`decoding.sampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from decoding.sampling import GREEDY, NO_TOKEN, Sampling, draw, noise, noise_width, warped
from decoding.tree import DraftTree, Ints, depths
from indexes.errors import ModelError


def read_before(tree: DraftTree, context: Sequence[int]) -> Ints:
    """(N + 1, L) the tokens that stand before the token chosen in each row, the root's first: context and path.

    Every token of the context (not empty) appears once; shorter paths are filled up with a token of the context, which
    is no new one.
    """
    depth = depths(tree)
    paths = np.full((len(tree) + 1, int(depth.max(initial=0))), context[-1], np.int64)
    for node, (parent, token) in enumerate(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)):
        paths[node + 1] = paths[parent + 1]
        paths[node + 1, depth[node] - 1] = token
    seen = np.unique(np.asarray(context, np.int64))
    return np.concatenate([np.broadcast_to(seen, (len(paths), len(seen))), paths], axis=1)


class Choices:
    """The target's token after each row (N + 1) of its logits, looked up by row.

    likeliest  (N + 1,) the token of the largest logit, whatever is chosen

    Raises ModelError when a row is looked up whose logits are no numbers. Other rows may be as they like: a draft
    never spoils an answer.
    """

    def __init__(self, likeliest: list[int], choose: Callable[[int], int]) -> None:
        self.likeliest = likeliest
        self._choose = choose

    def __getitem__(self, row: int) -> int:
        token = self._choose(row)
        if token == NO_TOKEN:
            raise ModelError(
                "the model's logits are not finite numbers, so there is no next token; "
                "try --dtype float32, else the model's files are damaged"
            )
        return token


def _greedy(logits: torch.Tensor) -> tuple[list[int], list[bool]]:
    """The likeliest token of each row, and whether its logit is a finite number; one read from the device."""
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        rows = logits.numpy()  # numpy's search uses one thread; torch's would go on spinning beside the next pass
        likeliest = rows.argmax(axis=-1)
        return likeliest.tolist(), np.isfinite(rows[np.arange(len(rows)), likeliest]).tolist()
    largest, found = logits.max(dim=-1)
    likely, sound = torch.stack([found, largest.isfinite()]).tolist()
    return likely, sound


@torch.inference_mode()
def choose(
    logits: torch.Tensor,
    tree: DraftTree,
    context: Sequence[int],
    sampling: Sampling = GREEDY,
    at_once: bool | None = None,
) -> Choices:
    """The target's choices, given its logits (N + 1, V) for the root and a tree, after `context` (prompt and answer).

    `at_once` chooses for all rows together, with one host-device read. Otherwise a row is computed when it is looked
    up, which is the default on the CPU: sorting 33 rows for top_p costs more than a forward pass, and few are visited.
    """
    if sampling.greedy and sampling.repetition_penalty == 1:
        likely, sound = _greedy(logits)
        return Choices(likely, lambda row: likely[row] if sound[row] else NO_TOKEN)
    likeliest = logits.argmax(dim=-1)
    depth = np.concatenate([[0], depths(tree)])
    before = np.empty((len(depth), 0), np.int64) if sampling.repetition_penalty == 1 else read_before(tree, context)

    @torch.inference_mode()
    def chosen(start: int, end: int) -> torch.Tensor:
        scores = warped(logits[start:end], torch.from_numpy(before[start:end]).to(logits.device), sampling)
        if sampling.greedy:
            largest, token = scores.max(dim=-1)
            return torch.where(largest.isfinite(), token, NO_TOKEN)
        first, last = int(depth[start:end].min()), int(depth[start:end].max())
        gumbel = noise(sampling.seed, len(context) + first, last - first + 1, noise_width(logits.shape[-1]))
        return draw(scores, torch.from_numpy(gumbel[depth[start:end] - first]).to(scores.device, scores.dtype))

    if logits.device.type != "cpu" if at_once is None else at_once:
        likely, tokens = torch.stack([likeliest, chosen(0, len(depth))]).tolist()
        return Choices(likely, tokens.__getitem__)
    return Choices(likeliest.tolist(), lambda row: int(chosen(row, row + 1)))
