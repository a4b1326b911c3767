"""The report of a run for people, in Markdown: scores, figures, the comparison, what failed and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MOST_EXAMPLES = 10
MOST_CHARS = 300

NAMES = {
    "exact_match": "Exact match (TriviaQA's scorer)",
    "f1": "F1 (TriviaQA's scorer)",
    "contains": "Contains an expected text, as words",
    "rouge_l": "ROUGE-L (F-measure, stemmed)",
    "citation_precision": "Citation precision",
    "citation_recall": "Citation recall",
}


class Examples:
    """Keeps the first rows that failed, that differ from plain decoding, and that miss every expected text."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Mapping[str, Any]]] = {"Failed": [], "Not as plain decoding": [], "Missed": []}

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, if there is something to show of it."""
        if row["error"]:
            self._keep("Failed", row)
        elif not row.get("plain", {}).get("identical", True):
            self._keep("Not as plain decoding", row)
        elif row["scores"].get("contains") == 0:
            self._keep("Missed", row)

    def _keep(self, kind: str, row: Mapping[str, Any]) -> None:
        if len(self.kept[kind]) < MOST_EXAMPLES:
            self.kept[kind].append(row)


def report(summary: Mapping[str, Any], examples: Examples) -> str:
    """The whole report; `summary` is what summary.json holds."""
    run = summary["run"]
    split = f", split {run['split']}" if run["split"] else ""
    parts = [f"# {run['dataset']}{split}", headline(summary), _table(("figure", "value"), figures(summary))]
    for kind, rows in examples.kept.items():
        if rows:
            parts += [f"## {kind} (the first {len(rows)})", "\n".join(map(_example, rows))]
    parts += ["## Settings", _table(("setting", "value"), run.items())]
    return "\n\n".join(parts) + "\n"


def headline(summary: Mapping[str, Any]) -> str:
    """How many questions were answered, in one line."""
    failed = f", {summary['failed']} failed" if summary["failed"] else ""
    answered = f"{summary['answered']} of {summary['questions']} questions answered"
    return f"{answered}{failed}; {summary['scored']} with a known answer."


def figures(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The figures with their names, which the terminal shows too."""
    rows = [(NAMES[name], f"{100 * value:.1f} %") for name, value in summary["scores"].items()]
    if unanswerable := summary.get("unanswerable"):
        declined = f"{unanswerable['declined']} of {unanswerable['questions']}"
        rows.append(("Unanswerable questions declined", declined))
    rows += [
        ("Copied from the passages", f"{100 * summary['copied_fraction']:.1f} %"),
        ("Accept length", accept_length(summary["accept_length"])),
        ("Tokens/s", f"{summary['tokens_per_s']:.1f}"),
        ("Answering", f"{summary['answering_s']:.1f} s for {summary['new_tokens']} tokens"),
    ]
    if plain := summary.get("plain"):
        rows += [
            ("Tokens/s of plain decoding", f"{plain['tokens_per_s']:.1f}"),
            ("Speed-up of decoding", _times(plain["speed_up_decoding"])),
            ("Speed-up of whole answers", _times(plain["speed_up_answers"])),
            ("Same answer as plain decoding", f"{plain['identical_answers']} of {plain['answers']}"),
        ]
    return rows


def _table(head: tuple[str, str], rows: Iterable[tuple[str, Any]]) -> str:
    return "\n".join(f"| {name} | {_cell(value)} |" for name, value in (head, ("---", "---"), *rows))


def accept_length(value: float | None) -> str:
    """An accept length for people."""
    return "unknown" if value is None else f"{value:.2f}"


def _times(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.2f} times"


def _example(row: Mapping[str, Any]) -> str:
    expected = " / ".join(row["expected"]) or ("none: it cannot be answered" if row["unanswerable"] else "unknown")
    lines = [f"- **row {row['row'] + 1}**: {_short(row['question'] or 'not readable')}"]
    if row["error"]:
        lines.append(f"  - {row['error']['type']}: {_short(row['error']['message'])}")
    else:
        lines += [f"  - answer: {_short(row['answer'])}", f"  - expected: {_short(expected)}"]
    if "plain" in row:
        lines.append(f"  - plain: {_short(row['plain']['answer'])}")
    return "\n".join(lines)


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= MOST_CHARS else f"{folded[:MOST_CHARS]}…"


def _cell(value: Any) -> str:
    return "" if value is None else str(value).replace("|", "\\|")
