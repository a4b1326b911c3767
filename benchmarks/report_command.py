"""The command of `report`, which runs the other benchmarks and writes the page of their results."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.command_line import make_engine
from app.commands.options import ModelOption, ProfileOption
from app.commands.terminal import out, progress_bars
from benchmarks.listed import words
from benchmarks.options import TokensOption
from indexes.errors import SettingError

RESULTS = Path(__file__).parents[1] / "docs" / "results.md"


def report(
    data: Annotated[Path | None, typer.Option(help="The folder of all data files.")] = None,
    redraw: Annotated[bool, typer.Option(help="Only write the page again, from the figures of the last run.")] = False,
    page: Annotated[Path, typer.Option("--out", help="The page; plots and figures go beside it.")] = RESULTS,
    questions: Annotated[int, typer.Option(min=1, help="How many questions to decode of each file.")] = 4,
    max_new_tokens: TokensOption = 96,
    dtypes: Annotated[str, typer.Option("--dtype", help="Number formats to decode in, comma-separated.")] = (
        "float32,bfloat16"
    ),
    python_mb: Annotated[
        int, typer.Option(min=1, help="How much of the installed Python sources to make datastores of.")
    ] = 4,
    parts: Annotated[
        str, typer.Option(help="Some of simulate, stores, decode; the others stay as they were.")
    ] = "simulate,stores,decode",
    model: ModelOption = None,
    profile: ProfileOption = None,
) -> None:
    """Run simulate on all answers and decode on all prompts, and write docs/results.md with its plots."""
    from benchmarks import report as benchmark
    from benchmarks.plots import draw
    from benchmarks.results_page import render

    if not page.suffix or page.is_dir():
        raise SettingError(f"--out is the page's file and not {str(page)!r}: give a name like results.md")
    folder = page.with_suffix("")
    kept = folder / "figures.json"
    if not redraw:
        if data is None:
            raise SettingError("a report needs the folder that holds the data files: --data FOLDER")
        chosen = words(parts, benchmark.PARTS, "parts")
        before = _earlier(kept) if set(chosen) != set(benchmark.PARTS) else {}
        benchmark.check_data(data)
        engines = [make_engine(dtype=dtype.strip(), model=model, profile=profile) for dtype in dtypes.split(",")]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass  # where nothing can be written is found out now, not hours later
        with progress_bars() as progress:
            results = benchmark.collect(engines, data, questions, max_new_tokens, python_mb, progress, chosen)
        kept.write_text(json.dumps(before | results, indent=1) + "\n", "utf-8")
    results = _earlier(kept)
    try:
        plots = draw(results, folder)
        text = render(results, plots, page, "python -m benchmarks report --data FOLDER")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SettingError(f"{kept} holds other figures than this version's ({error!r}); give --data FOLDER") from error
    page.write_text(text, "utf-8")
    out.print(f"Wrote {page}, {len(plots)} plots and figures.json in {folder}")


def _earlier(kept: Path) -> dict[str, Any]:
    """The figures of the last run. Raises SettingError when there are none."""
    try:
        results: dict[str, Any] = dict(json.loads(kept.read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise SettingError(
            f"{kept} holds no figures of an earlier run ({error}); give --data FOLDER, and no --parts"
        ) from error
    return results
