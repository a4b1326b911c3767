"""Which n-grams of a CREST datastore are worth their bytes: beyond the paper, which keeps the most common ones.

An n-gram that is left out is answered by its longest end that is kept. So what it is worth is how much more its own
tree tells about the next token than that end's: the relative entropy of the two first levels (Stolcke 1998, "Entropy-
based pruning of backoff language models"), times how often the n-gram was seen, per byte of its record.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

UNSEEN = 10  # halvings: a token that the end's tree does not hold is given 1/1024


def first_level(record: bytes, width: int) -> dict[bytes, int]:
    """How often the probability of each child of the root is halved, by its token's bytes."""
    nodes, n = record[0], record[1]
    tokens = 2 + n * width
    links = tokens + nodes * width
    found, halvings = {}, 0
    for node in range(nodes):
        link = record[links + node]
        halvings += link & 3
        if link < 4:
            found[record[tokens + node * width : tokens + (node + 1) * width]] = halvings
    return found


def told(own: Mapping[bytes, int], end: Mapping[bytes, int]) -> float:
    """The bits that a tree's first level tells beyond that of its end, on average per token."""
    return sum(0.5**halvings * (end.get(token, UNSEEN) - halvings) for token, halvings in own.items())


def most_telling(
    worth: npt.NDArray[np.float64], costs: npt.NDArray[np.float64], names: npt.NDArray[np.uint64], limit_bytes: int
) -> npt.NDArray[np.bool_]:
    """(R,) which records to keep so that their costs stay within the limit: those worth most per byte.

    Ties go to the lesser of the `names`, which differ.
    """
    order = np.lexsort((names, -worth / costs))
    kept = np.zeros(len(order), np.bool_)
    kept[order[: int(np.searchsorted(np.cumsum(costs[order]), limit_bytes, side="right"))]] = True
    return kept
