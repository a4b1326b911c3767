"""From replies to a line per method, and to the ratios that say who is faster. Sees no engine.

Ratios are of totals over the same questions; their spread is of the single questions.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers.methods import BASELINE, DEFAULT_DRAFTER, PEERS
from benchmarks.replies import Reply

Replies = Mapping[str, Sequence[Reply]]

DEFAULTS = (f"{DEFAULT_DRAFTER}:bfloat16", f"{DEFAULT_DRAFTER}:int8")
RATES = (
    (BASELINE, "hf-generate"),
    (DEFAULTS[0], "hf-prompt-lookup"),
    (DEFAULTS[0], "vllm-suffix"),
    (DEFAULTS[1], "vllm-suffix"),
)


def is_peer(method: str) -> bool:
    """Whether it is not ours."""
    return method in PEERS or method.startswith("hf-")


def decode_rate(replies: Sequence[Reply]) -> float | None:
    """Tokens per second after those of the first pass; None if there were none."""
    decoded = sum(len(reply.tokens) - reply.first for reply in replies)
    return decoded / sum(reply.decode_s for reply in replies) if decoded else None


def answer_s(replies: Sequence[Reply]) -> float:
    """Mean seconds to the complete answer, prefill included."""
    return statistics.mean(reply.first_s + reply.decode_s for reply in replies)


def best_peer(replies: Replies) -> str | None:
    """Whose complete answers come soonest, of those that are not ours."""
    return min(filter(is_peer, replies), key=lambda method: answer_s(replies[method]), default=None)


def figures(method: str, replies: Replies) -> dict[str, Any]:
    """The line of one method."""
    own, plain, best = replies[method], replies[BASELINE], best_peer(replies)
    rate = decode_rate(own)
    rates = [each for reply in own if (each := decode_rate([reply])) is not None]
    decoded, passes = sum(len(reply.tokens) - reply.first for reply in own), sum(reply.passes for reply in own)
    seconds = answer_s(own)
    identical = sum(reply.tokens == other.tokens for reply, other in zip(own, plain, strict=True))
    line = {
        "method": method,
        "tokens": sum(len(reply.tokens) for reply in own),
        "tokens_per_s": None if rate is None else round(rate, 2),
        "tokens_per_s_spread": _spread(rates),
        "time_to_first_token_s": round(statistics.median(reply.first_s for reply in own), 3),
        "answer_s": round(seconds, 3),
        "answer_against_best_peer": round(seconds / answer_s(replies[best]), 3) if best else None,
        "accept_length": round(decoded / passes, 3) if passes else None,
        "identical_to_plain": round(identical / len(own), 4),
    }
    if errors := [reply.drafter_error for reply in own if reply.drafter_error]:
        line["drafter_switched_off"] = f"in {len(errors)} of {len(own)} answers: {errors[0]}"
    return line


def comparisons(replies: Replies) -> list[dict[str, Any]]:
    """Decode rates of ours against theirs (above 1 is faster), then complete answers (below 1 is faster)."""
    lines = [_rates(replies, ours, theirs) for ours, theirs in RATES]
    best = best_peer(replies)
    return [*lines, *(_answers(replies, ours, best) for ours in DEFAULTS)]


def _rates(replies: Replies, ours: str, theirs: str) -> dict[str, Any]:
    what = f"decode tokens/s, {ours} / {theirs}"
    if absent := [method for method in (ours, theirs) if method not in replies]:
        return _not_measured(what, absent)
    pairs = [
        (mine, other)
        for one, two in zip(replies[ours], replies[theirs], strict=True)
        if (mine := decode_rate([one])) and (other := decode_rate([two]))
    ]
    mine, other = decode_rate(replies[ours]), decode_rate(replies[theirs])
    ratio = round(mine / other, 3) if mine and other else None
    return {"comparison": what, "ratio": ratio, "spread": _spread([one / two for one, two in pairs])}


def _answers(replies: Replies, ours: str, best: str | None) -> dict[str, Any]:
    what = f"seconds to the complete answer, {ours} / best peer ({best})"
    if best is None or ours not in replies:
        return _not_measured(what, [*([] if best else ["any peer"]), *([] if ours in replies else [ours])])
    each = [answer_s([one]) / answer_s([two]) for one, two in zip(replies[ours], replies[best], strict=True)]
    ratio = round(answer_s(replies[ours]) / answer_s(replies[best]), 3)
    return {"comparison": what, "ratio": ratio, "spread": _spread(each)}


def _not_measured(what: str, absent: Sequence[str]) -> dict[str, Any]:
    return {"comparison": what, "ratio": None, "not_measured": f"without {', '.join(absent)}"}


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {
        "min": round(min(values), 2),
        "median": round(statistics.median(values), 2),
        "max": round(max(values), 2),
    }
