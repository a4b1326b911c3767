"""A request's likeliest copy: token after token what most often follows the longest match of the text's end in it.

The text is a request's prompt and its output, so the passages in the prompt are copied from, and earlier sentences of
the answer. Knows no chances of its own: it is given them by kind of match (`KINDS`).
"""

from __future__ import annotations

import numpy as np

from indexes.compiled import compiled
from indexes.context_matches import LENGTH, MATCHES, MAX_MATCHES, ContextMatches, matches_after
from indexes.ngram_counts import Array

LENGTH_EDGES = (2, 3, 4, 5, 7, 10, 15)  # the first lengths of the bins after the first
SUPPORTS = ("once", "always", "mostly", "else")  # how often the copied token follows where two tokens match
KINDS = (len(LENGTH_EDGES) + 1) * len(SUPPORTS)
ROOM = 256  # the longest chain
MOST_COMPARED = 64


@compiled()
def kind_of(length: int, same: int, all_: int) -> int:
    """The kind of a copied token: by the length of its match, and by how many places agree on it."""
    bin_ = 0
    for edge in LENGTH_EDGES:
        if length >= edge:
            bin_ += 1
    support = 0 if all_ == 1 else 1 if same == all_ else 2 if 2 * same >= all_ else 3
    return bin_ * 4 + support


@compiled()
def _best_follower(text: ContextMatches, matched: Array, lengths: Array, count: int) -> tuple[int, int]:
    """What most often follows the longest matches, the newest of equals; and its kind. There must be a match."""
    longest = 0
    for index in range(count):
        longest = max(longest, lengths[index])
    best, most, compared = -1, 0, 0
    for index in range(count):
        if lengths[index] == longest:
            token, times = text.tokens[matched[index] + 1], 0
            for other in range(index, count):
                times += lengths[other] == longest and text.tokens[matched[other] + 1] == token
            if times > most:
                best, most = token, times
            compared += 1
            if most >= count - index - times or compared == MOST_COMPARED:
                break  # no other can follow more often, or there are too many to look at them all
    same, all_ = 0, 0
    for index in range(count):
        if lengths[index] >= min(longest, 2):
            all_ += 1
            same += text.tokens[matched[index] + 1] == best
    return best, kind_of(longest, same, all_)


@compiled()
def copied_chain(text: ContextMatches, chances: Array, most: int, floor: float) -> tuple[Array, Array, Array]:
    """Up to `most` tokens after the text: tokens, kinds, and survival (the chance that all up to here are right), (N,).

    chances (KINDS,) are those of a token given that all before it are right; the chain ends where survival falls
    below `floor`. Its own tokens may be copied from, so what repeats goes on repeating.
    """
    tokens, kinds, survival = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.float64)
    matched, lengths = text.matched.copy(), text.lengths.copy()
    new_matched, new_lengths = np.empty(MAX_MATCHES, np.int32), np.empty(MAX_MATCHES, np.int32)
    count, end, chance = text.cursor[MATCHES], text.cursor[LENGTH], 1.0
    for depth in range(most):
        if count == 0:
            return tokens[:depth], kinds[:depth], survival[:depth]
        token, kind = _best_follower(text, matched, lengths, count)
        chance *= chances[kind]
        if chance < floor:
            return tokens[:depth], kinds[:depth], survival[:depth]
        tokens[depth], kinds[depth], survival[depth] = token, kind, chance
        text.tokens[end + depth] = token
        count = matches_after(text, matched, lengths, count, token, new_matched, new_lengths)
        matched, new_matched = new_matched, matched
        lengths, new_lengths = new_lengths, lengths
    return tokens, kinds, survival
