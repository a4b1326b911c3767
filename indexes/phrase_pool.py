"""The phrase pool: short runs of tokens by their first token, the least recently used evicted (ouroboros sec. 2.2).

P(v) (its eq. 1) holds the tails c_2..c_beta of all phrases that begin with v, at most W of them. Lookahead decoding
keeps its n-grams the same way. Knows no model, and not where phrases come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from indexes.errors import SettingError

Tail = tuple[int, ...]


class PhrasePool:
    """`per_token` is the paper's W: the most phrases kept for one first token.

    A phrase that is added again counts as used. Raises SettingError when per_token is below 1.
    """

    def __init__(self, per_token: int) -> None:
        if per_token < 1:
            raise SettingError(f"per_token is {per_token}; a phrase pool keeps at least 1 phrase per token")
        self.per_token = per_token
        self._tails: dict[int, dict[Tail, None]] = {}  # each inner dict in the order of use, newest last

    def __len__(self) -> int:
        return sum(map(len, self._tails.values()))

    def add(self, phrase: Sequence[int]) -> None:
        """Add a phrase as the newest of its first token. One without a tail says nothing and is left out."""
        if len(phrase) < 2:
            return
        tails = self._tails.setdefault(phrase[0], {})
        tail = tuple(phrase[1:])
        tails.pop(tail, None)
        tails[tail] = None
        if len(tails) > self.per_token:
            del tails[next(iter(tails))]

    def remove(self, phrase: Sequence[int]) -> None:
        """Drop a phrase, if it is there."""
        self._tails.get(phrase[0], {}).pop(tuple(phrase[1:]), None)

    def newest(self, token: int, count: int) -> list[Tail]:
        """The tails of the `count` most recently used phrases that begin with `token`, newest first."""
        return list(islice(reversed(self._tails.get(token, {})), max(0, count)))

    def reset(self) -> None:
        """Drop all phrases."""
        self._tails = {}
