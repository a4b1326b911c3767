"""Reciprocal rank fusion (Cormack, Clarke & Buettcher 2009)."""

from __future__ import annotations

from collections.abc import Sequence

K = 60


def fuse(rankings: Sequence[Sequence[int]], top_k: int) -> list[tuple[int, float]]:
    """The `top_k` items with the greatest sum of 1 / (60 + rank) over the rankings, best first, with that sum.

    Ties go to the item that an earlier ranking holds first.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (K + rank)
    return sorted(scores.items(), key=lambda item: -item[1])[:top_k]
