"""What the command line shows: streamed answers with coloured spans, passages, figures, progress bars."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from app.answering.answers import Answer
    from app.answering.spans import Span
    from app.documents.places import Place
    from retrieval.indexing import Progress as Report
    from retrieval.indexing import Report as IndexReport

COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")

CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}

out = Console(highlight=False)
err = Console(highlight=False, stderr=True)


def say(message: str) -> None:
    """A line for people, on stderr."""
    err.print(Text(message, "dim"), soft_wrap=True)


@contextlib.contextmanager
def progress_bars() -> Iterator[Report]:
    """Yields a function that shows how far a long task is; bars go to stderr, and nothing if there is no such task."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=err)
    tasks: dict[str, TaskID] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            bars.start()
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)

    try:
        yield report
    finally:
        if tasks:
            bars.stop()


def coloured(text: str, spans: Sequence[Span], ranks: Mapping[str, int]) -> Text:
    """A text with its spans in their passage's colour, each followed by the passage's number."""
    shown, position = Text(), 0
    for span in spans:
        rank = ranks[span.passage_id]
        shown.append(visible(text[position : span.start]))
        shown.append(visible(text[span.start : span.end]), COLOURS[rank % len(COLOURS)])
        shown.append(f"[{rank + 1}]", "dim")
        position = span.end
    return shown.append(visible(text[position:]))


def visible(text: str) -> str:
    """The text with its control characters as pictures: documents must not steer the terminal."""
    return text.translate(CONTROLS)


def print_stream(answers: Iterable[Answer]) -> Answer | None:
    """Show an answer while it is written, then its passages and figures; returns its last state."""
    answer = None
    with Live(console=out, refresh_per_second=12, vertical_overflow="visible") as live:
        for answer in answers:
            ranks = {found.passage.id: rank for rank, found in enumerate(answer.passages)}
            live.update(coloured(answer.text, answer.spans, ranks))
    if answer is None:
        return None
    out.print()
    for rank, found in enumerate(answer.passages):
        passage = found.passage
        page = f", page {passage.page}" if passage.page else ""
        line = Text(f"[{rank + 1}] ", COLOURS[rank % len(COLOURS)])
        line.append(visible(f"{passage.source}{page}"), "bold").append(f", from character {passage.start}", "dim")
        out.print(line, soft_wrap=True)
    for note in answer.notes:
        out.print(Text(note, "yellow"), soft_wrap=True)
    if answer.stats.new_tokens:
        out.print(Text(answer.stats.line(), "dim"), soft_wrap=True)
    return answer


def print_place(place: Place) -> None:
    """A place in a document: what it is called, then the text with the place marked."""
    out.print(Text(visible(place.citation), "bold"), soft_wrap=True)
    shown = Text("…\n" if place.cut_before else "").append(visible(place.before))
    shown.append(visible(place.marked), "black on yellow").append(visible(place.after))
    out.print(shown.append("\n…" if place.cut_after else ""), soft_wrap=True)


def print_report(name: str, report: IndexReport | None, as_json: bool) -> None:
    """What an indexing run did, and which files were skipped and why."""
    if as_json:
        print(json.dumps({"name": name, **(asdict(report) if report else {"encoded": 0})}))
        return
    if report is None:
        out.print(f"{name} is up to date.")
        return
    out.print(
        f"{name}: {report.documents} documents, {report.passages} passages ({report.layout} vectors); "
        f"{report.encoded} new or changed, {report.removed} removed"
        f"{f', {report.excluded} left out (deleted before)' if report.excluded else ''}.",
        soft_wrap=True,
    )
    print_skipped(report.skipped)


def print_figures(headline: str, rows: Iterable[tuple[str, str]]) -> None:
    """Named figures, one a line."""
    out.print(Text(visible(headline)), soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, "dim"), Text(visible(value)))
    out.print(table)


def print_skipped(skipped: Mapping[str, str]) -> None:
    """Which files could not be read, and why."""
    if skipped:
        out.print(f"Skipped {len(skipped)}:")
    for file, reason in skipped.items():
        out.print(Text(visible(f"  {file}: {reason}"), "yellow"), soft_wrap=True)


def print_trace(answer: str, spans: Sequence[Span], passage_ids: Sequence[str], fraction: float) -> None:
    """A traced text with its spans coloured, then where each stands."""
    ranks = {passage_id: rank for rank, passage_id in enumerate(passage_ids)}
    out.print(coloured(answer, spans, ranks), soft_wrap=True)
    out.print()
    for span in spans:
        line = f"[{ranks[span.passage_id] + 1}] stands in {span.passage_id} at {span.passage_start}-{span.passage_end}"
        out.print(Text(visible(line), COLOURS[ranks[span.passage_id] % len(COLOURS)]), soft_wrap=True)
    out.print(Text(f"{fraction:.0%} of the answer stands in the passages.", "dim"))
