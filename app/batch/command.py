"""The command `batch`: answers a data set's questions and scores them, in a run that can be killed and resumed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.command_line import make_engine
from app.commands.options import ActorsOption, EngineFlags, JsonOption, RayAddressOption, takes_engine_flags
from indexes.errors import SettingError

if TYPE_CHECKING:
    from app.answering.engine import Engine
    from app.batch.datasets import Dataset
    from retrieval.finder import Finder


@takes_engine_flags
def batch(
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset", "-d",
            help="python-docs (built in), triviaqa (rc.wikipedia), triviaqa:unfiltered.nocontext, hagrid, or a file: "
            "TriviaQA or SQuAD JSON, LLMA, Spec-Bench, or rows with a question column (jsonl json csv tsv parquet).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run's folder. One with a run in it is resumed.")],
    flags: EngineFlags,
    split: Annotated[str | None, typer.Option(help="Of a hub set; its validation or dev split if not given.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    compare: Annotated[
        str | None, typer.Option(help="plain: answer every question by plain decoding, too, and compare.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what failed before.")] = False,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Answer thousands of questions and score them. Kill it at any point: the same command goes on where it was."""
    if compare not in (None, "plain"):
        raise SettingError(f"compare is {compare!r}; the only choice is plain")
    from app.cluster.session import RAY, ray_choice

    on_ray = ray_choice(flags["engine"], ray_address, actors)
    if flags["engine"] == RAY:  # that is where answers are written; what writes them is recorded as ever
        flags["engine"] = "openai" if flags["base_url"] else None
    engine = make_engine(**flags)
    from app.batch.answering import Answerer, is_remote
    from app.batch.datasets import load
    from app.batch.progress import run_progress
    from app.batch.report import figures, headline
    from app.batch.run import Run
    from app.batch.run_folder import REPORT
    from app.commands.terminal import print_figures, say

    if compare and (is_remote(engine) or engine.settings.drafter == "plain"):
        raise SettingError(
            "nothing is drafted with these settings, so there is nothing to compare; leave --compare out"
        )
    data = load(dataset, split, limit)
    answerer = Answerer(engine, _index(engine, data), compare is not None)
    try:
        with contextlib.ExitStack() as held, run_progress(len(data.rows)) as progress:
            if on_ray:
                from app.cluster.answering import RayAnswerer

                answerer = RayAnswerer(engine, answerer.index, answerer.compare, on_ray, held, say)
            run = Run(data, answerer, out, say)
            summary = run.go(limit, retry_failed, progress)
    except KeyboardInterrupt:
        say(f"Stopped after {run.summary.questions} of {len(data.rows)} questions; the same command goes on from there")
        raise
    if as_json:
        print(json.dumps(summary))
        return
    print_figures(headline(summary), figures(summary))
    if summary["failed"]:
        say(f"{summary['failed']} failed; the same command with --retry-failed asks them again")
    say(f"The whole report is {out / REPORT}")


def _index(engine: Engine, data: Dataset) -> Path | Finder | None:
    """The finder, or the folder of the index, that the run searches, opened once so that it is known to be usable;
    None: nothing is searched."""
    from app.answering.sources import chosen_source, index_folder
    from app.batch.run import index_for
    from app.commands.terminal import progress_bars
    from indexes.store import check_name

    if engine.settings.finder:
        return chosen_source(engine)
    name = index_for(data, engine.settings.index if "index" in engine.settings.model_fields_set else None)
    if name is None:
        return None
    with progress_bars() as progress:
        folder = index_folder(engine, check_name(name), progress)
    engine.open(folder)
    return folder
