"""The command line: how many vectors, of what, and where the files may lie meanwhile."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.options import JsonOption, ProfileOption

EXAMPLE = (
    "Examples: python -m benchmarks index --vectors 1000000 --dim 1024   |   "
    "index --vectors 10000,100000 --real 0 --out plots"
)
TABLES = ("indexes", "probes", "growth")


def index(
    vectors: Annotated[str, typer.Option(help="How many synthetic vectors.")] = "10000,100000,1000000",
    dim: Annotated[int, typer.Option(min=8, help="Numbers of a synthetic vector.")] = 1024,
    real: Annotated[int, typer.Option(min=0, help="Also so many paragraphs of real text, encoded here.")] = 12_000,
    questions: Annotated[int, typer.Option(min=1, help="How many to ask each index.")] = 200,
    words: Annotated[int, typer.Option(min=1, help="Words of a synthetic passage.")] = 60,
    probes: Annotated[str, typer.Option(help="Other values of nprobe to try.")] = "16,64,256",
    threads: Annotated[int, typer.Option(min=1, help="Threads of FAISS.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Other vectors, other questions.")] = 0,
    scratch: Annotated[
        Path | None, typer.Option(file_okay=False, help="Where indexes are built; vectors stay there for the next run.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", file_okay=False, help="A folder for index-growth.png and index.json.")
    ] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build, open and search indexes of many vectors: time, memory, recall, and bare FAISS beside us."""
    from app.commands.command_line import make_engine
    from app.commands.terminal import progress_bars
    from benchmarks.index.measuring import Setting, run
    from benchmarks.listed import numbers

    setting = Setting(
        numbers("vectors", vectors, 1), dim, real, questions, words, numbers("probes", probes, 1), threads, seed
    )
    for wanted in filter(None, (scratch, folder)):
        wanted.mkdir(parents=True, exist_ok=True)
    engine = make_engine(profile=profile)
    with tempfile.TemporaryDirectory() as passing, progress_bars() as progress:
        results = run(engine, setting, scratch or Path(passing), progress)
    _show(results, as_json)
    if folder is not None:
        _keep(results, folder)


def _show(results: dict[str, Any], as_json: bool) -> None:
    from benchmarks.tables import out, print_result

    if as_json:
        print_result(results, "indexes", True)
        return
    for name in TABLES:
        out.print(name, style="bold")
        shown = results["conditions"] if name == TABLES[0] else {}
        print_result({"conditions": shown, name: results[name]}, name, False)


def _keep(results: dict[str, Any], folder: Path) -> None:
    from app.commands.terminal import say
    from benchmarks.index.plot import draw

    (folder / "index.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    say(f"Wrote index.json and {', '.join(path.name for path in draw(results, folder).values())} in {folder}")
