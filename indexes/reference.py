"""Several token sequences as one, with the positions of every token: what lookups in references start from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

GROWING = -1
UNKNOWN_END = sys.maxsize


class ReferenceIndex:
    """References joined end to end; a lookup never crosses from one into the next.

    The last one may grow: it holds what `append` adds, such as the answer emitted so far.

    tokens     (T,) all tokens
    starts     (T,) where the reference of each token starts
    ends       (T,) where it ends (exclusive); UNKNOWN_END for the growing one
    owners     (T,) which reference it is; GROWING for the growing one
    positions  token -> its positions, ascending
    """

    def __init__(self, references: Sequence[Sequence[int]]) -> None:
        self.tokens: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.owners: list[int] = []
        self.positions: dict[int, list[int]] = {}
        self._growing_start = 0
        for owner, reference in enumerate(references):
            start, count = len(self.tokens), len(reference)
            self.tokens.extend(reference)
            self.starts.extend([start] * count)
            self.ends.extend([start + count] * count)
            self.owners.extend([owner] * count)
        for position, token in enumerate(self.tokens):
            self.positions.setdefault(token, []).append(position)

    def append(self, tokens: Iterable[int]) -> None:
        """Lengthen the growing reference."""
        if not self.owners or self.owners[-1] != GROWING:
            self._growing_start = len(self.tokens)
        for token in tokens:
            self.positions.setdefault(token, []).append(len(self.tokens))
            self.tokens.append(token)
            self.starts.append(self._growing_start)
            self.ends.append(UNKNOWN_END)
            self.owners.append(GROWING)

    def extend_matches(self, matches: dict[int, int], token: int) -> dict[int, int]:
        """Longest matches after one more token.

        `matches` maps a position to the length of the longest suffix of the text before `token` that ends
        there; the result does the same for the text with `token`.
        """
        starts = self.starts
        return {
            position: (matches.get(position - 1, 0) if position > starts[position] else 0) + 1
            for position in self.positions.get(token, ())
        }
