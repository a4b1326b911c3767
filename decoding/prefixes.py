"""What people have had the target read before: the beginning of a prompt that was read already is not read again.

Each session's keys and values are its own: the target's cache holds one session's at a time, and those of the others
lie beside it, copied when it changes hands, the longest unused ones dropped first. Nobody's tokens are ever looked up
with another one's prompt, so the time to an answer tells nothing of what others have asked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from decoding.target import Snapshot, TargetModel


@dataclass(frozen=True, slots=True)
class _Read:
    """A session's tokens, and their keys and values."""

    tokens: tuple[int, ...]
    snapshot: Snapshot


class KeptPrefixes:
    """The sessions of one target. limit_bytes bounds what is kept beside the target's cache; 0 keeps nothing at all."""

    def __init__(self, target: TargetModel, limit_bytes: int) -> None:
        self._target = target
        self._limit_bytes = limit_bytes
        self._owner: str | None = None
        self._tokens: tuple[int, ...] = ()
        self._aside: OrderedDict[str, _Read] = OrderedDict()

    @property
    def memory_bytes(self) -> int:
        """What is kept beside the target's cache."""
        return sum(read.snapshot.memory_bytes for read in self._aside.values())

    def begin(self, owner: str | None, prompt: Sequence[int]) -> int:
        """Give the cache to a session: how many of the prompt's first tokens it holds, always less than all.

        Until `end` is called the cache counts as nobody's. None is a session without a memory.
        """
        if owner is None or self._limit_bytes <= 0:
            self._put_aside()
            return 0
        if owner != self._owner:
            self._put_aside()
            self._take_back(owner)
        tokens, self._tokens, self._owner = self._tokens, (), None
        if self._target.length != len(tokens):
            tokens = ()  # somebody else has used the target
        pairs = zip(tokens, prompt[:-1], strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self._target.truncate(same)
        return same

    def end(self, owner: str | None, tokens: Sequence[int]) -> None:
        """Say what was read: `tokens` are prompt and answer, of which the cache holds the first."""
        if owner is None or self._limit_bytes <= 0:
            self._target.truncate(0)
            return
        self._owner, self._tokens = owner, tuple(tokens[: self._target.length])
        self._target.truncate(len(self._tokens))

    def forget(self, owner: str) -> None:
        """Drop what a session has had read."""
        self._aside.pop(owner, None)
        if self._owner == owner:
            self._owner, self._tokens = None, ()
            self._target.truncate(0)

    def _put_aside(self) -> None:
        if self._owner is not None and 0 < len(self._tokens) == self._target.length:
            self._aside[self._owner] = _Read(self._tokens, self._target.snapshot())
            while self._aside and self.memory_bytes > self._limit_bytes:
                self._aside.popitem(last=False)
        self._owner, self._tokens = None, ()
        self._target.truncate(0)

    def _take_back(self, owner: str) -> None:
        if kept := self._aside.pop(owner, None):
            self._target.restore(kept.snapshot)
            self._tokens = kept.tokens
