"""How far a run is: a bar with questions per second, accept length and the time left; plain lines where there is no
terminal to draw on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from app.batch.report import accept_length
from app.batch.summary import Summary
from app.commands.terminal import err, say

LINE_EVERY_S = 60.0


@contextlib.contextmanager
def run_progress(total: int) -> Iterator[Callable[[Summary], None]]:
    """Yields a function that shows a run's state; its first call says what was there before."""
    start, at_start = time.monotonic(), -1
    said_at, said = start, ""
    columns = (TextColumn("Answering"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=total, state="")

        def show(summary: Summary) -> None:
            nonlocal start, at_start, said_at, said
            if at_start < 0:
                start, at_start = time.monotonic(), summary.questions
            state = line(summary, total, summary.questions - at_start, time.monotonic() - start)
            bar.update(task, completed=summary.questions, state=state)
            if not err.is_terminal and (time.monotonic() - said_at >= LINE_EVERY_S or summary.questions == total):
                said_at, said = time.monotonic(), state
                say(f"{summary.questions} of {total}: {said}")

        yield show


def line(summary: Summary, total: int, answered: int, elapsed_s: float) -> str:
    """The state of a run of which this process has answered so many questions in so many seconds."""
    rate = answered / elapsed_s if answered and elapsed_s > 0 else 0.0
    waiting = total - summary.questions
    left = f"{_clock(waiting / rate)} left" if rate else "time left unknown" if waiting else "done"
    failed = f" · {summary.failed} failed" if summary.failed else ""
    return f"{rate:.2f} questions/s · accept length {accept_length(summary.accept_length)} · {left}{failed}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
