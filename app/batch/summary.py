"""The figures of a whole run out of its rows. A pure function: the same rows always give the same figures.

Scores are means over the questions of which an expected text is known. As in TriviaQA's official scorer a question
without an answer counts 0, which goes for those that failed too; precision of citations is a mean over the answers that
cite, their recall over all that have citations to be compared with. tokens_per_s and accept_length are of all tokens
and passes together, not means of answers' figures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]

SCORES = ("exact_match", "f1", "contains", "rouge_l")
FAILED_SCORE = 0.0


class Summary:
    """Adds rows up."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._finished: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._drafted, self._plain = _Figures(), _Figures()
        self._copied = 0.0

    def add(self, row: Row) -> None:
        """Count a row in."""
        self._counts["questions"] += 1
        self._add_scores(row)
        if row.get("error"):
            self._counts["failed"] += 1
            self._errors[row["error"]["type"]] += 1
            return
        self._finished[str(row["finished"])] += 1
        self._copied += row["stats"]["copied_fraction"]
        self._drafted.add(row["stats"])
        if "plain" in row:
            self._plain.add(row["plain"]["stats"])
            self._counts["identical"] += row["plain"]["identical"]

    def _add_scores(self, row: Row) -> None:
        scores = row["scores"]
        for name in row["scored"]:
            if name == "citation_precision" and name not in scores:
                continue  # nothing is cited, so nothing is cited wrongly
            self._counts[name] += 1
            self._sums[name] += scores.get(name, FAILED_SCORE)
        if row["unanswerable"]:
            self._counts["unanswerable"] += 1
            self._sums["unanswerable"] += scores.get("exact_match", FAILED_SCORE)

    @property
    def questions(self) -> int:
        """How many rows there are."""
        return self._counts["questions"]

    @property
    def failed(self) -> int:
        """How many of them hold an error and no answer."""
        return self._counts["failed"]

    @property
    def accept_length(self) -> float | None:
        """Tokens per forward pass over all answers, prefills apart; None where another server counts its passes."""
        return self._drafted.accept_length

    def to_json(self) -> dict[str, Any]:
        """What summary.json holds; scores from 0 to 1, rounded to four places."""
        answered = self.questions - self.failed
        names = [*SCORES, "citation_precision", "citation_recall"]
        result: dict[str, Any] = {
            "questions": self.questions,
            "answered": answered,
            "failed": self.failed,
            "errors": dict(self._errors),
            "finished": dict(self._finished),
            "scored": self._counts[SCORES[0]],
            "scores": {name: round(self._sums[name] / self._counts[name], 4) for name in names if self._counts[name]},
            "copied_fraction": round(self._copied / max(1, answered), 4),
            **self._drafted.to_json(),
        }
        if self._counts["unanswerable"]:
            result["unanswerable"] = {
                "questions": self._counts["unanswerable"], "declined": round(self._sums["unanswerable"])
            }  # fmt: skip
        if self._plain.answers:
            result["plain"] = {**self._plain.to_json(), **self._comparison()}
        return result

    def _comparison(self) -> dict[str, Any]:
        drafted, plain = self._drafted, self._plain
        return {
            "answers": plain.answers,
            "identical_answers": self._counts["identical"],
            "speed_up_decoding": round(drafted.tokens_per_s / plain.tokens_per_s, 3) if plain.tokens_per_s else None,
            "speed_up_answers": round(plain.total_s / drafted.total_s, 3) if drafted.total_s else None,
        }


class _Figures:
    """Sums of answers' figures."""

    def __init__(self) -> None:
        self.answers = 0
        self._sums: defaultdict[str, float] = defaultdict(float)

    def add(self, stats: Row) -> None:
        self.answers += 1
        for name in ("new_tokens", "forward_passes", "decode_s", "total_s", "prompt_tokens"):
            self._sums[name] += stats[name]
        # the first token of an answer comes with its prefill: neither counts as decoding
        self._sums["decoded"] += max(0, stats["new_tokens"] - 1)
        self._sums["decode_passes"] += max(0, stats["forward_passes"] - 1)

    @property
    def tokens_per_s(self) -> float:
        return self._sums["decoded"] / self._sums["decode_s"] if self._sums["decode_s"] else 0.0

    @property
    def total_s(self) -> float:
        return float(self._sums["total_s"])

    @property
    def accept_length(self) -> float | None:
        if not self._sums["decode_passes"]:
            return None if self._sums["decoded"] else 1.0
        return self._sums["decoded"] / self._sums["decode_passes"]

    def to_json(self) -> dict[str, Any]:
        return {
            "new_tokens": round(self._sums["new_tokens"]),
            "prompt_tokens": round(self._sums["prompt_tokens"]),
            "accept_length": None if self.accept_length is None else round(self.accept_length, 3),
            "tokens_per_s": round(self.tokens_per_s, 2),
            "answering_s": round(self.total_s, 2),
        }
