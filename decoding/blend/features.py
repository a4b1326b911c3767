"""What is known of each token that may come next, as numbers for the scorer.

Candidates are the tokens that follow a match of the context in the references or in the answer so far, and the most
frequent followers in two n-gram tables (earlier answers, other passages). Knows nothing of probabilities: those are
the scorer's.
"""

from __future__ import annotations

import numpy as np

from decoding.blend.session import EMITTED, LENGTH, OUTPUT, POINTER, Session
from indexes.compiled import compiled
from indexes.ngram_counts import Array, NgramCounts, add_followers, probabilities

MAX_CANDIDATES = 128
FOLLOWERS = 8
FEATURES = (
    *(f"longest match in references: {name}" for name in ("0", "1", "2", "3", "4-5", "6-9", "10+")),
    "no shorter than the best", "one shorter", "how much shorter",
    *(f"share of matches of at least {length}" for length in (1, 2, 3, 5)),
    *(f"log number of matches of at least {length}" for length in (1, 2, 3)),
    "log number of references", "log number of candidates at the best length", "log count in documents",
    "in the question", "rank of its reference", "trust in its reference", "near the last copied place",
    "near words of the question",
    *(f"longest match in the answer: {name}" for name in ("0", "1", "2", "3+")),
    "share of matches in the answer", "log count in the answer",
    "log probability after earlier answers", "log probability after other passages",
    "probability after earlier answers", "probability after other passages",
    "longest order known from earlier answers", "longest order known from other passages",
    *(f"its kind is {kind}" for kind in range(8)),
    *(f"the last token's kind is {kind}" for kind in range(8)),
    "second token of the answer", "third token of the answer", "log place in the answer",
    "best match in references", "best match in the answer", "no match at all",
    "log frequency", "follows a match",
)  # fmt: skip
COUNT = len(FEATURES)

LONGEST, SEEN, SEEN_2, SEEN_3, SEEN_5, LONGEST_OUT, SEEN_OUT, RELEVANCE, RANK, TRUST, NEAR = range(11)


@compiled()
def _bin(length: float) -> int:
    if length < 4:
        return int(length)
    return 4 if length < 6 else 5 if length < 10 else 6


@compiled()
def find_candidates(
    session: Session, matched: Array, count: int, recent: Array, known: int,
    answers: NgramCounts, passages: NgramCounts, slot_of: Array, candidates: Array,
) -> tuple[int, int]:  # fmt: skip
    """Fill `candidates`; returns how many follow a match, and how many there are. Marks them in `slot_of` (V,)."""
    found = 0
    for index in range(count):
        place = matched[index] + 1
        if place < session.cursor[LENGTH] and place < session.end[matched[index]]:
            token = session.tokens[place]
            if slot_of[token] < 0 and found < len(candidates):
                slot_of[token] = found
                candidates[found] = token
                found += 1
    total = add_followers(answers, recent, known, FOLLOWERS, slot_of, candidates, found)
    return found, add_followers(passages, recent, known, FOLLOWERS, slot_of, candidates, total)


@compiled()
def _gather(
    session: Session, matched: Array, lengths: Array, count: int, slot_of: Array, sums: Array, owners: Array,
    best_place: Array,
) -> tuple[Array, float, float]:  # fmt: skip
    """Sum up the matches per candidate into `sums`, `owners` (bit sets) and `best_place`.

    Returns how many matches have at least 1, 2, 3, 5 tokens in references, and any in the answer; both best lengths.
    """
    totals = np.zeros(5, np.float32)
    best, best_out = 0, 0
    pointer = session.cursor[POINTER]
    for index in range(count):
        at, length = matched[index], lengths[index]
        if at + 1 >= session.cursor[LENGTH] or at + 1 >= session.end[at]:
            continue
        slot = slot_of[session.tokens[at + 1]]
        if slot < 0:
            continue
        row = sums[slot]
        owner = session.owner[at]
        if owner == OUTPUT:
            best_out = max(best_out, length)
            row[LONGEST_OUT] = max(row[LONGEST_OUT], length)
            row[SEEN_OUT] += 1
            totals[4] += 1
            continue
        best = max(best, length)
        if length > row[LONGEST]:
            row[LONGEST], best_place[slot] = length, at
            row[RELEVANCE], row[RANK], row[TRUST], row[NEAR] = 0, 10, 0, 0
        if length == row[LONGEST]:
            row[RELEVANCE] = max(row[RELEVANCE], session.relevance[at + 1])
            row[RANK] = min(row[RANK], session.rank[at])
            if session.trust[owner] > row[TRUST]:
                row[TRUST], best_place[slot] = session.trust[owner], at
            if pointer >= 0 and session.owner[pointer] == owner:
                away = at - pointer
                near = np.exp(-abs(away - 1) / 15.0) if away > 0 else 0.5 * np.exp(away / 15.0)
                row[NEAR] = max(row[NEAR], near)
        for level, least in enumerate((1, 2, 3, 5)):
            if length >= least:
                row[SEEN + level] += 1
                totals[level] += 1
        owners[slot] |= np.int64(1) << np.int64(min(owner, 62))
    return totals, best, best_out


@compiled()
def featurise(
    session: Session, matched: Array, lengths: Array, count: int, recent: Array, known: int, depth: int,
    answers: NgramCounts, passages: NgramCounts, slot_of: Array, candidates: Array, best_place: Array, out: Array,
) -> int:  # fmt: skip
    """Features (C, COUNT) of every candidate after a context into `out`; returns their number C.

    matched, lengths, count  the matches of the context's end
    recent, known            its last tokens, newest first, and how many there are
    depth                    how many tokens it has beyond the answer
    candidates, best_place   (MAX_CANDIDATES,) are filled: each one's token, and the place of its best match or -1
    """
    following, total = find_candidates(session, matched, count, recent, known, answers, passages, slot_of, candidates)
    after_answers, after_passages = np.empty(total, np.float32), np.empty(total, np.float32)
    order_a = probabilities(answers, recent, known, slot_of, candidates, total, after_answers)
    order_p = probabilities(passages, recent, known, slot_of, candidates, total, after_passages)
    sums, owners = np.zeros((total, 11), np.float32), np.zeros(total, np.int64)
    best_place[:total] = -1
    totals, best, best_out = _gather(session, matched, lengths, count, slot_of, sums, owners, best_place)
    at_best = 0
    for slot in range(total):
        at_best += best > 0 and sums[slot, LONGEST] == best
    place = session.cursor[EMITTED] + depth
    out[:total] = 0
    for slot in range(total):
        token, row, x = candidates[slot], sums[slot], out[slot]
        longest = row[LONGEST]
        x[_bin(longest)] = 1
        x[7] = longest > 0 and longest == best
        x[8] = best - longest == 1
        x[9] = min(best - longest, 8) / 8
        for level in range(4):
            x[10 + level] = row[SEEN + level] / max(totals[level], 1)
        for level in range(3):
            x[14 + level] = np.log1p(row[SEEN + level])
        holders, bits = 0, owners[slot]
        while bits:
            holders += 1
            bits &= bits - 1
        x[17], x[18] = np.log1p(holders), np.log1p(at_best)
        x[19], x[20] = np.log1p(session.in_documents[token]), session.in_question[token]
        x[21] = row[RANK] / 10 if longest > 0 else 1
        x[22], x[23], x[24] = row[TRUST], row[NEAR], row[RELEVANCE]
        x[25 + int(min(row[LONGEST_OUT], 3))] = 1
        x[29], x[30] = row[SEEN_OUT] / max(totals[4], 1), np.log1p(session.in_answer[token])
        x[31], x[32] = np.log(after_answers[slot] + 1e-7) / 5, np.log(after_passages[slot] + 1e-7) / 5
        x[33], x[34], x[35], x[36] = after_answers[slot], after_passages[slot], order_a / 4, order_p / 4
        x[37 + session.kinds[token]] = 1
        x[45 + session.kinds[recent[0]]] = 1
        x[53], x[54], x[55] = place <= 1, place == 2, np.log1p(place) / 5
        x[56], x[57], x[58] = min(best, 12) / 12, min(best_out, 6) / 6, totals[0] == 0
        x[59], x[60] = np.log(passages.unigram[token]) / 10, slot < following
        slot_of[token] = -1
    return total
