"""``python -m benchmarks scaling``: whether time and memory grow as they should."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.options import DtypeOption, JsonOption, ModelOption, ProfileOption, TargetOption

FIGURES = "figures.json"


def scaling(
    contexts: Annotated[str, typer.Option(help="Tokens before a pass, and in a prompt.")] = "512,1024,2048,4096,8192",
    rows: Annotated[str, typer.Option(help="Rows of a pass: the last token and draft nodes.")] = "1,8,16,32",
    chunks: Annotated[str, typer.Option(help="Passages of an index.")] = "250,500,1000,2000,4000",
    reference_tokens: Annotated[
        str, typer.Option("--references", help="Tokens of a question's references.")
    ] = "500,1000,2000,4000,8000,16000",
    rounds: Annotated[int, typer.Option(min=1, help="How often; the fastest time counts.")] = 3,
    parts: Annotated[str, typer.Option(help="Some of steps, index, drafting.")] = "steps,index,drafting",
    folder: Annotated[
        Path | None, typer.Option("--out", file_okay=False, help="A folder for plots and figures.json.")
    ] = None,
    dtype: DtypeOption = None,
    target: TargetOption = None,
    model: ModelOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time and memory against context, corpus and references, with the exponents that were fitted to them."""
    from app.commands.command_line import make_engine
    from app.commands.terminal import progress_bars
    from benchmarks import scaling_run as benchmark
    from benchmarks.listed import numbers, words

    setting = benchmark.Setting(
        words(parts, benchmark.PARTS, "parts"), numbers("contexts", contexts, 1), numbers("rows", rows, 1),
        numbers("chunks", chunks, 1), numbers("references", reference_tokens, 1), rounds,
    )  # fmt: skip
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass  # where nothing can be written is found out now, not minutes later
    engine = make_engine(dtype=dtype, target=target, model=model, profile=profile)
    with progress_bars() as progress:
        results = benchmark.run(engine, setting, progress)
    _show(results, as_json)
    if folder is not None:
        _keep(results, folder)


def _show(results: dict[str, Any], as_json: bool) -> None:
    from benchmarks.tables import out, print_result

    if as_json:
        print_result(results, "growth", True)
        return
    tables = [name for name in results if name != "conditions"]
    for place, name in enumerate(tables):
        out.print(name, style="bold")
        print_result({"conditions": {} if place else results["conditions"], name: results[name]}, name, False)


def _keep(results: dict[str, Any], folder: Path) -> None:
    from app.commands.terminal import say
    from benchmarks.scaling_plots import draw

    (folder / FIGURES).write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    say(f"Wrote {len(draw(results, folder))} plots and {FIGURES} in {folder}")
