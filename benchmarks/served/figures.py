"""From passes to a line per method and number of requests at once, and to the ratios between methods. Sees no engine.

Tokens per second are of whole passes, reading the prompts included; decode tokens per second are what one asker sees
after the first token. Ratios are of totals over the same prompts; their spread is of the single chunks.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.served.measuring import OURS, PLAIN, Pass

Line = dict[str, Any]


def overall(passes: Sequence[Pass]) -> float:
    """Tokens per second of the engine."""
    return sum(len(answer["tokens"]) for one in passes for answer in one.answers) / sum(one.seconds for one in passes)


def decode(passes: Sequence[Pass]) -> float | None:
    """Tokens per second of one request after its first step; None if no answer has any."""
    answers = [answer for one in passes for answer in one.answers]
    tokens = sum(len(answer["tokens"]) - answer["first"] for answer in answers)
    return tokens / sum(answer["decode_s"] for answer in answers) if tokens else None


def lines(passes: Sequence[Pass]) -> list[Line]:
    """A line per number of requests at once and method."""
    return [
        _line(method, level, [one for one in passes if (one.method, one.at_once) == (method, level)], passes)
        for level in dict.fromkeys(one.at_once for one in passes)
        for method in dict.fromkeys(one.method for one in passes)
    ]


def _line(method: str, level: int, own: Sequence[Pass], passes: Sequence[Pass]) -> Line:
    line: Line = {"at_once": level, "method": method}
    if not own:
        return line
    answers = [answer for one in own for answer in one.answers]
    decoded = sum(len(answer["tokens"]) - answer["first"] for answer in answers)
    steps = sum(answer["passes"] for answer in answers)
    same, compared = identical(own, passes)
    return line | {
        "tokens": sum(len(answer["tokens"]) for answer in answers),
        "tokens_per_s": round(overall(own), 2),
        "decode_tokens_per_s": _rounded(decode(own), 2),
        "decode_spread": _spread([rate for one in own if (rate := decode([one]))]),
        "first_token_s": round(statistics.median(answer["first_s"] for answer in answers), 3),
        "tokens_per_step": round(decoded / steps, 3) if steps else None,
        "identical_to_plain": f"{same} of {compared}",
    }


def identical(own: Sequence[Pass], passes: Sequence[Pass]) -> tuple[int, int]:
    """How many answers are those that plain decoding gave first, fewest requests at once; and of how many."""
    plain: dict[int, Sequence[int]] = {}
    for one in sorted((one for one in passes if one.method == PLAIN), key=lambda one: (one.at_once, one.round)):
        for number, answer in zip(one.numbers, one.answers, strict=True):
            plain.setdefault(number, answer["tokens"])
    pairs = [
        (answer["tokens"], plain[number])
        for one in own
        for number, answer in zip(one.numbers, one.answers, strict=True)
        if number in plain
    ]
    return sum(mine == other for mine, other in pairs), len(pairs)


def comparisons(passes: Sequence[Pass]) -> list[Line]:
    """Ours against each other method: above 1, ours is faster."""
    others = [method for method in dict.fromkeys(one.method for one in passes) if method != OURS]
    levels = dict.fromkeys(one.at_once for one in passes)
    return [
        line
        for level in levels
        for other in others
        if (line := _ratio([one for one in passes if one.at_once == level], level, other))
    ]


def _ratio(passes: Sequence[Pass], level: int, other: str) -> Line | None:
    by_chunk = {
        method: {(one.round, one.numbers): one for one in passes if one.method == method} for method in (OURS, other)
    }
    shared = by_chunk[OURS].keys() & by_chunk[other].keys()
    if not shared:
        return None
    mine, theirs = ([by_chunk[method][key] for key in sorted(shared)] for method in (OURS, other))
    mine_decode, theirs_decode = decode(mine), decode(theirs)
    each = [(decode([one]), decode([two])) for one, two in zip(mine, theirs, strict=True)]
    return {
        "at_once": level,
        "comparison": f"ours / {other}",
        "tokens_per_s": round(overall(mine) / overall(theirs), 3),
        "tokens_per_s_spread": _spread(
            [overall([one]) / overall([two]) for one, two in zip(mine, theirs, strict=True)]
        ),
        "decode_tokens_per_s": _rounded(mine_decode / theirs_decode, 3) if mine_decode and theirs_decode else None,
        "decode_spread": _spread([one / two for one, two in each if one and two]),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {
        name: round(found(values), 2) for name, found in (("min", min), ("median", statistics.median), ("max", max))
    }
