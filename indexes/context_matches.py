"""Where the end of a growing text stands in it before: every place and how long it agrees, kept up token by token.

A match is a place before the end whose token is the text's last one; its length is how many tokens before it agree
too. Compiled, flat arrays; the time to append a token grows with its matches, not with the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.compiled import compiled
from indexes.ngram_counts import Array

MAX_MATCHES = 1024
MAX_NEW = 512
LONGEST = 64  # lengths are counted no further
LENGTH, MATCHES = range(2)  # what `cursor` holds
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class ContextMatches(NamedTuple):
    """A text of up to T tokens.

    tokens    (T + room,) the text, and room behind it for tokens that are only guessed
    previous  (T,) the place before with the same token, -1 if there is none
    keys, newest  (M,) open addressing from a token to its last place, M a power of two; key -1 is a free slot
    matched, lengths  (MAX_MATCHES,) the matches of the text's end
    cursor    (2,) LENGTH of the text, number of MATCHES
    """

    tokens: Array
    previous: Array
    keys: Array
    newest: Array
    matched: Array
    lengths: Array
    cursor: Array


def empty_matches(size: int, room: int) -> ContextMatches:
    """An empty text with space for `size` tokens, and `room` behind it."""
    slots = 1 << (2 * max(size, 1)).bit_length()
    return ContextMatches(
        np.zeros(size + room, np.int32), np.full(size, -1, np.int32),
        np.full(slots, -1, np.int32), np.full(slots, -1, np.int32),
        np.zeros(MAX_MATCHES, np.int32), np.zeros(MAX_MATCHES, np.int32), np.zeros(2, np.int64),
    )  # fmt: skip


@compiled()
def _slot(text: ContextMatches, token: int) -> int:
    mask = len(text.keys) - 1
    slot = int((np.uint64(token) * _SPREAD) >> np.uint64(32)) & mask
    while text.keys[slot] != -1 and text.keys[slot] != token:
        slot = (slot + 1) & mask
    return slot


@compiled()
def matches_after(
    text: ContextMatches, matched: Array, lengths: Array, count: int, token: int, new_matched: Array, new_lengths: Array
) -> int:
    """Matches once `token` follows, newest first; `matched` and `lengths` are those before. Returns how many.

    Tokens that stand behind the text count as following it. Of those that only begin to match, the newest are taken,
    so that a frequent token leaves room for the matches that go on.
    """
    found, new, at = 0, 0, 0
    place = text.newest[_slot(text, token)]
    while found < MAX_MATCHES:
        while at < count and text.tokens[matched[at] + 1] != token:
            at += 1
        going_on = matched[at] + 1 if at < count else -1
        if going_on < 0 and place < 0:
            break
        if going_on >= place:
            new_matched[found], new_lengths[found] = going_on, min(lengths[at] + 1, LONGEST)
            at += 1
        else:
            new_matched[found], new_lengths[found] = place, 1
            new += 1
        if going_on <= place:
            place = text.previous[place] if new < MAX_NEW else -1
        found += 1
    return found


@compiled()
def append(text: ContextMatches, tokens: Array) -> None:
    """Append tokens, none of them negative. There must be space for them."""
    matched, lengths = np.empty(MAX_MATCHES, np.int32), np.empty(MAX_MATCHES, np.int32)
    for token in tokens:
        place = text.cursor[LENGTH]
        text.tokens[place] = token
        found = matches_after(text, text.matched, text.lengths, text.cursor[MATCHES], token, matched, lengths)
        text.matched[:found] = matched[:found]
        text.lengths[:found] = lengths[:found]
        text.cursor[MATCHES] = found
        slot = _slot(text, token)
        text.previous[place] = text.newest[slot]
        text.keys[slot] = token
        text.newest[slot] = place
        text.cursor[LENGTH] += 1
