"""A suffix automaton: for every end of a text, its longest suffix that occurs in a sequence, in linear time.

(Blumer et al. 1985.) Works on any hashable symbols.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator


class SuffixAutomaton:
    """All substrings of a sequence; `first_end` of a state is where its strings end for the first time."""

    def __init__(self, symbols: Iterable[Hashable] = ()) -> None:
        self._next: list[dict[Hashable, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        self._first_end = [0]
        self._last = 0
        for symbol in symbols:
            self._append(symbol)

    def _append(self, symbol: Hashable) -> None:
        end = self._length[self._last] + 1
        state = self._new({}, 0, end, end)
        above = self._last
        while above >= 0 and symbol not in self._next[above]:
            self._next[above][symbol] = state
            above = self._link[above]
        if above >= 0:
            target = self._next[above][symbol]
            if self._length[target] != self._length[above] + 1:
                target = self._split(above, symbol, target)
            self._link[state] = target
        self._last = state

    def _split(self, above: int, symbol: Hashable, target: int) -> int:
        clone = self._new(
            dict(self._next[target]), self._link[target], self._length[above] + 1, self._first_end[target]
        )
        self._link[target] = clone
        while above >= 0 and self._next[above].get(symbol) == target:
            self._next[above][symbol] = clone
            above = self._link[above]
        return clone

    def _new(self, following: dict[Hashable, int], link: int, length: int, first_end: int) -> int:
        self._next.append(following)
        self._link.append(link)
        self._length.append(length)
        self._first_end.append(first_end)
        return len(self._next) - 1

    def longest_suffixes(self, text: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
        """For each symbol of `text`: (length, end) of the longest suffix up to it that occurs in the sequence.

        `end` (exclusive) is where that suffix ends first in the sequence.
        """
        state = length = 0
        for symbol in text:
            while state and symbol not in self._next[state]:
                state = self._link[state]
                length = self._length[state]
            if symbol in self._next[state]:
                state = self._next[state][symbol]
                length += 1
            yield length, self._first_end[state]
