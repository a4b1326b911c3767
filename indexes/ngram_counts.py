"""Which tokens follow which: counts after every run of 1 to 4 tokens, with interpolated probabilities.

Flat arrays and compiled look-ups, so that a draft can ask for dozens of contexts in microseconds. Knows neither where
the texts come from nor what a token means. The probabilities follow Witten and Bell (1991): after a context seen n
times with d different tokens, p(t) = (c(t) + d * p_shorter(t)) / (n + d).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from indexes.compiled import compiled

Array = npt.NDArray[Any]

ORDERS = 4
TOP = 32
_SMOOTHING = 0.02
_PRIME, _GOLDEN = np.uint64(1099511628211), np.uint64(0x9E3779B97F4A7C15)
_BASIS, _HALF, _ONE = np.uint64(1469598103934665603), np.uint64(31), np.uint64(1)


class NgramCounts(NamedTuple):
    """A hash table from contexts to rows, and the tokens that follow each context, most frequent first.

    keys, rows  (M,) open addressing, M a power of two; key 0 is a free slot
    offsets     (R + 1,) the entries of each row
    totals, distinct  (R,) how often the context stands in the texts, and with how many different tokens after it
    tokens, counts  (E,) the entries: at most TOP per row
    unigram     (V,) smoothed share of each token
    """

    keys: Array
    rows: Array
    offsets: Array
    totals: Array
    distinct: Array
    tokens: Array
    counts: Array
    unigram: Array


@compiled()
def _context_hash(recent: Array, order: int) -> Any:
    """Hash of the last `order` tokens; recent (4,) has the newest first."""
    value = _BASIS ^ np.uint64(order)
    for index in range(order):
        value = (value ^ np.uint64(recent[index] + 1)) * _PRIME
        value ^= value >> _HALF
    value = (value * _GOLDEN) ^ ((value * _GOLDEN) >> _HALF)
    return value if value != 0 else _ONE


@compiled()
def _pairs(tokens: Array, order: int, out: Array) -> int:
    """(context hash, next token) of every place; -1 separates texts, and no context holds one. Returns how many."""
    recent = np.empty(ORDERS, np.int64)
    found, since = 0, 0
    for index in range(len(tokens)):
        if tokens[index] < 0:
            since = 0
            continue
        if since >= order:
            for back in range(order):
                recent[back] = tokens[index - 1 - back]
            out[found, 0] = _context_hash(recent, order)
            out[found, 1] = np.uint64(tokens[index])
            found += 1
        since += 1
    return found


@compiled()
def _insert(keys: Array, rows: Array, hashes: Array) -> None:
    mask = np.uint64(len(keys) - 1)
    for row in range(len(hashes)):
        slot = hashes[row] & mask
        while keys[slot] != 0:
            slot = (slot + _ONE) & mask
        keys[slot] = hashes[row]
        rows[slot] = row


@compiled()
def find_row(table: NgramCounts, recent: Array, order: int) -> int:
    """The row of the last `order` tokens, or -1."""
    wanted = _context_hash(recent, order)
    mask = np.uint64(len(table.keys) - 1)
    slot = wanted & mask
    while table.keys[slot] != 0:
        if table.keys[slot] == wanted:
            return int(table.rows[slot])
        slot = (slot + _ONE) & mask
    return -1


def count_ngrams(texts: Iterable[Sequence[int]], vocabulary: int, min_count: int = 1) -> NgramCounts:
    """Count what follows each run of 1 to 4 tokens within each text.

    Tokens outside [0, vocabulary) end a text. Contexts of two and more tokens that stand in the texts less than
    `min_count` times are dropped.
    """
    parts = [np.array([-1], np.int64)]
    for text in texts:
        parts += [np.asarray(text, np.int64).reshape(-1), parts[0]]
    flat = np.concatenate(parts)
    flat[(flat < 0) | (flat >= vocabulary)] = -1
    unigram = np.bincount(flat[flat >= 0], minlength=vocabulary) + _SMOOTHING
    hashes, totals, distinct, lengths = [], [], [], []
    tokens, counts = [], []
    for order in range(1, ORDERS + 1):
        pairs = np.zeros((len(flat), 2), np.uint64)
        pairs = pairs[: _pairs(flat, order, pairs)]
        if not len(pairs):
            break
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        begins = np.flatnonzero(np.r_[True, (pairs[1:] != pairs[:-1]).any(axis=1)])
        times, pairs = np.diff(np.r_[begins, len(pairs)]), pairs[begins]
        fresh = np.r_[True, pairs[1:, 0] != pairs[:-1, 0]]
        context = np.cumsum(fresh) - 1
        total = np.bincount(context, weights=times)
        kept = total >= (min_count if order > 1 else 1)
        frequent = np.lexsort((-times, context))  # the contexts stay in order, their tokens by count
        rank = np.arange(len(frequent)) - np.flatnonzero(fresh)[context[frequent]]
        chosen = frequent[(rank < TOP) & kept[context[frequent]]]
        hashes.append(pairs[fresh][kept, 0])
        totals.append(total[kept])
        distinct.append(np.bincount(context)[kept])
        lengths.append(np.bincount((np.cumsum(kept) - 1)[context[chosen]], minlength=int(kept.sum())))
        tokens.append(pairs[chosen, 1])
        counts.append(times[chosen])
    found = _joined(hashes, np.uint64)
    size = 1 << (2 * len(found) + 1).bit_length()
    keys, rows = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
    _insert(keys, rows, found)
    return NgramCounts(
        keys,
        rows,
        np.r_[0, np.cumsum(_joined(lengths, np.int64))].astype(np.int64),
        _joined(totals, np.float32),
        _joined(distinct, np.float32),
        _joined(tokens, np.int32),
        _joined(counts, np.float32),
        (unigram / unigram.sum()).astype(np.float32),
    )


def _joined(parts: list[Array], dtype: Any) -> Array:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


@compiled()
def add_followers(
    table: NgramCounts, recent: Array, known: int, most: int, slot_of: Array, candidates: Array, count: int
) -> int:
    """Add the `most` most frequent tokens after each context to `candidates`; returns how many there are now.

    known    how many of `recent` are tokens of this text
    slot_of  (V,) a token's index in `candidates`, -1 if it is none
    """
    for order in range(min(known, ORDERS), 0, -1):
        row = find_row(table, recent, order)
        if row >= 0:
            for entry in range(table.offsets[row], min(table.offsets[row + 1], table.offsets[row] + most)):
                token = table.tokens[entry]
                if slot_of[token] < 0 and count < len(candidates):
                    slot_of[token] = count
                    candidates[count] = token
                    count += 1
    return count


@compiled()
def probabilities(
    table: NgramCounts, recent: Array, known: int, slot_of: Array, candidates: Array, count: int, out: Array
) -> int:
    """Interpolated probability of each candidate into `out`; returns the longest order that is known here."""
    for index in range(count):
        out[index] = table.unigram[candidates[index]]
    longest = 0
    for order in range(1, min(known, ORDERS) + 1):
        row = find_row(table, recent, order)
        if row < 0:
            continue
        longest = order
        weight = table.totals[row] + table.distinct[row]
        for index in range(count):
            out[index] *= table.distinct[row] / weight
        for entry in range(table.offsets[row], table.offsets[row + 1]):
            slot = slot_of[table.tokens[entry]]
            if slot >= 0:
                out[slot] += table.counts[entry] / weight
    return longest
