"""``python -m benchmarks relevance``: how often questions are refused, those that the documents answer and others."""

from __future__ import annotations

from typing import Annotated

import typer

from app.commands.options import JsonOption, ProfileOption
from app.commands.terminal import out
from benchmarks.options import DataOption


def relevance(
    data: DataOption,
    questions: Annotated[int, typer.Option(min=1, help="At most so many of each article, by seeded choice.")] = 110,
    fit: Annotated[bool, typer.Option("--fit", help="Fit the numbers anew, and report with those.")] = False,
    least: Annotated[
        float | None, typer.Option(min=0, max=1, help="Refuse below this [default: the setting min_relevance].")
    ] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refusals by threshold: SQuAD questions with and without their article, others asked of the built-in corpus."""
    from app.commands.command_line import make_engine
    from app.commands.terminal import progress_bars
    from benchmarks import relevance_run as benchmark
    from benchmarks.tables import print_result

    engine = make_engine(profile=profile)
    with progress_bars() as progress:
        result = benchmark.run(engine, data, questions, fit, least, progress)
    print_result(result, "cases", as_json)
    if not as_json:
        print_result({"conditions": {"half": "report"}, "curve": result["curve"]}, "curve", False)
        out.print(f"Numbers (retrieval/relevance.py): {result['fit']}")
