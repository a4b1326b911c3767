"""``python -m benchmarks follow-ups``: whether questions that go back to earlier ones find their passages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.commands.options import JsonOption, ProfileOption


def follow_ups(
    half: Annotated[str, typer.Option(help="report, choose (what the weights were chosen on) or all.")] = "report",
    data: Annotated[
        Path | None, typer.Option(help="A SQuAD file: its questions after those of another article are asked too.")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Instead: the model's answers, told about earlier turns in several ways.")
    ] = False,
    by_kind: Annotated[bool, typer.Option("--by-kind", help="A line per kind of dialogue.")] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recall of written follow-ups: searched alone, with the question before, our way, and as a person would ask."""
    from app.commands.command_line import make_engine
    from app.commands.terminal import progress_bars
    from benchmarks import follow_ups_run as benchmark
    from benchmarks import told_turns
    from benchmarks.tables import print_result

    engine = make_engine(profile=profile)
    with progress_bars() as progress:
        if answers:
            result = told_turns.run(engine, half, progress)
        else:
            result = benchmark.run(engine, half, data, by_kind, progress)
    print_result(result, "ways", as_json)
