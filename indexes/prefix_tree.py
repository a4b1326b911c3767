"""Continuations of one match merged into a token tree: the most frequent prefixes (crest sec. 3.1, REST's drafting).

Works on sorted rows, in which every prefix is one contiguous run, so a tree costs a few passes over the
columns however many continuations there are. Knows neither where rows come from nor how trees are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TokenTree:
    """A tree of continuations, parents first and likeliest first, so that its first nodes are a tree as well.

    tokens   (N,) token ids
    parents  (N,) index of each node's parent, -1 for the match itself
    probs    (N,) the share of the continuations that begin with the node's path, in (0, 1]
    """

    tokens: Ints
    parents: Ints
    probs: Floats

    def __len__(self) -> int:
        return len(self.tokens)


NO_TREE = TokenTree(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def frequent_prefixes(rows: npt.NDArray[np.integer], limit: int, least: int = 1) -> TokenTree:
    """The `limit` most frequent prefixes of `rows` (K, D), none that occurs less than `least` times.

    Rows are sorted and hold token ids plus one; 0 says that a text has ended, and only zeros follow it.
    Ties go to the shorter prefix, then to the smaller ids.
    """
    count, depth = rows.shape
    runs = [_runs(rows, at) for at in range(depth)] if count > 1 else []
    if count == 1 and least <= 1:
        tokens = rows[0][: int(np.argmin(rows[0] != 0)) if not rows[0].all() else depth].astype(np.int64) - 1
        length = min(len(tokens), max(0, limit))
        return TokenTree(tokens[:length], np.arange(-1, length - 1), np.ones(length))
    if not runs or limit < 1:
        return NO_TREE
    starts = np.concatenate([run[0] for run in runs])
    counts = np.concatenate([run[1] for run in runs])
    depths = np.repeat(np.arange(depth), [len(run[0]) for run in runs])
    alive = np.flatnonzero((rows[starts, depths] != 0) & (counts >= least))
    if len(alive) > 4 * limit:  # sort only what can be among the first
        alive = alive[counts[alive] >= np.partition(counts[alive], -limit)[-limit]]
    chosen = alive[np.lexsort((starts[alive], depths[alive], -counts[alive]))[:limit]]
    places = {(int(depths[node]), int(starts[node])): at for at, node in enumerate(chosen)}
    parents = [
        -1 if not depths[node] else places[int(depths[node]) - 1, _run_of(runs[depths[node] - 1][0], starts[node])]
        for node in chosen
    ]
    tokens = rows[starts[chosen], depths[chosen]].astype(np.int64) - 1
    return TokenTree(tokens, np.asarray(parents, np.int64).reshape(len(chosen)), counts[chosen] / count)


def _runs(rows: npt.NDArray[np.integer], depth: int) -> tuple[Ints, Ints]:
    """Where each run of rows begins that agree in the columns up to `depth`, and how long it is."""
    differs = (rows[1:, : depth + 1] != rows[:-1, : depth + 1]).any(axis=1)
    starts = np.concatenate(([0], np.flatnonzero(differs) + 1))
    return starts, np.diff(starts, append=len(rows))


def _run_of(starts: Ints, row: int) -> int:
    return int(starts[np.searchsorted(starts, row, side="right") - 1])
