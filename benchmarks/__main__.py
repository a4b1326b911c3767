"""``python -m benchmarks --help``: tables for people, ``--json`` for programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.commands.command_line import make_engine, run_cli
from app.commands.options import (
    DatastoreOption,
    DraftModelOption,
    DtypeOption,
    JsonOption,
    ModelOption,
    ProfileOption,
    TargetOption,
)
from app.commands.terminal import out, progress_bars
from benchmarks.follow_ups import follow_ups
from benchmarks.gpu import gpu
from benchmarks.index.command import EXAMPLE as INDEX_EXAMPLE
from benchmarks.index.command import index
from benchmarks.options import DataOption, FormatOption, LimitOption, NodesOption, TokensOption
from benchmarks.peers.command import EXAMPLE, peers
from benchmarks.perplexity import perplexity
from benchmarks.relevance import relevance
from benchmarks.report_command import report
from benchmarks.scaling import scaling
from benchmarks.served.command import EXAMPLE as SERVED_EXAMPLE
from benchmarks.served.command import vllm
from benchmarks.tables import print_result

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@cli.callback()
def benchmarks() -> None:
    """Measured comparisons. Each prints what it was measured under."""


@cli.command(epilog="Example: python -m benchmarks retrieval --data squad2_dev.json")
def retrieval(
    data: DataOption,
    questions: Annotated[int, typer.Option(min=1, help="How many answerable questions to ask.")] = 1000,
    seed: Annotated[int, typer.Option(help="Which ones.")] = 0,
    held_out: Annotated[bool, typer.Option(help="Ask as many of the others: for tuning.")] = False,
    candidates: Annotated[int | None, typer.Option(min=1, help="Passages that are fused and reranked.")] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recall and cost of every retrieval stage over the paragraphs of a SQuAD file."""
    from benchmarks import retrieval as benchmark

    engine = make_engine(profile=profile, candidates=candidates)
    with progress_bars() as progress:
        result = benchmark.run(engine, data, questions, seed, held_out, progress)
    print_result(result, "stages", as_json)


@cli.command(epilog="Example: python -m benchmarks decode --data spec_bench_rag.jsonl --limit 12 --dtype bfloat16")
def decode(
    data: DataOption,
    methods: Annotated[
        str, typer.Option(help="Comma-separated; trie@8 verifies 8 nodes at most, always.")
    ] = "plain,blend,trie,llma,prompt-lookup,hf-generate,hf-prompt-lookup",
    data_format: FormatOption = None,
    limit: LimitOption = None,
    skip: Annotated[int, typer.Option(min=0, help="Leave out the first so many questions.")] = 0,
    runs: Annotated[int, typer.Option(min=1, help="How often to ask all questions.")] = 1,
    max_new_tokens: TokensOption = 128,
    max_nodes: NodesOption = None,
    dtype: DtypeOption = None,
    target: TargetOption = None,
    model: ModelOption = None,
    draft_model: DraftModelOption = None,
    datastore: DatastoreOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tokens per second of every method, interleaved per question."""
    from benchmarks import decode as benchmark

    engine = make_engine(
        dtype=dtype,
        target=target,
        model=model,
        draft_model=draft_model,
        datastore=datastore,
        profile=profile,
        max_nodes=max_nodes,
    )  # fmt: skip
    with progress_bars() as progress:
        names = [name.strip() for name in methods.split(",") if name.strip()]
        result = benchmark.run(engine, data, data_format, names, limit, skip, max_new_tokens, progress, runs)
    print_result(result, "methods", as_json)


@cli.command(epilog="Example: python -m benchmarks identity --data spec_bench_rag.jsonl --targets auto,pytorch")
def identity(
    data: Annotated[list[Path], typer.Option(help="A data file; may be given several times.")],
    drafters: Annotated[
        str, typer.Option(help="Comma-separated; hostile knows the answer and hides it.")
    ] = "blend,trie,llma,prompt-lookup,hostile",
    targets: Annotated[str, typer.Option(help="Comma-separated: auto, lean, pytorch, general.")] = "auto",
    data_format: FormatOption = None,
    limit: LimitOption = None,
    max_new_tokens: TokensOption = 128,
    max_nodes: NodesOption = None,
    dtype: DtypeOption = None,
    model: ModelOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare drafted answers with plain ones, token for token; exit code 1 if one of the first target differs."""
    from benchmarks import identity as benchmark
    from benchmarks.listed import words
    from decoding.targets import CHOICES

    chosen = list(dict.fromkeys(words(targets, CHOICES, "targets")))
    first = make_engine(dtype=dtype, target=chosen[0], model=model, profile=profile, max_nodes=max_nodes)
    engines = {chosen[0]: first}
    for target in chosen[1:]:  # in the same number format
        engines[target] = make_engine(
            dtype=first.dtype_name, target=target, model=model, profile=profile, max_nodes=max_nodes
        )
    with progress_bars() as progress:
        names = [name.strip() for name in drafters.split(",") if name.strip()]
        result = benchmark.run(engines, data, data_format, names, limit, max_new_tokens, progress)
    if not as_json:
        for line in result["drafters"]:
            line["differences"] = len(line["differences"])
    print_result(result, "drafters", as_json)
    if any(line["differences"] for line in result["drafters"] if line["target"] == chosen[0]):
        sys.exit(1)


@cli.command("second-turns", epilog="Example: python -m benchmarks second-turns --data mt_bench_questions.jsonl")
def second_turns(
    data: DataOption,
    limit: LimitOption = None,
    max_new_tokens: TokensOption = 64,
    dtype: DtypeOption = None,
    target: TargetOption = None,
    model: ModelOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time to the first token of a second turn, with what the first one left in the cache and without."""
    from benchmarks import second_turns as benchmark

    engine = make_engine(dtype=dtype, target=target, model=model, profile=profile)
    with progress_bars() as progress:
        result = benchmark.run(engine, data, limit, max_new_tokens, progress)
    print_result(result, "turns", as_json)


@cli.command(epilog="Example: python -m benchmarks simulate --data llma_rag.jsonl --drafter all --max-nodes 32")
def simulate(
    data: DataOption,
    drafter: Annotated[str, typer.Option(help="One, several with commas, or all that need no model.")] = "all",
    max_nodes: Annotated[int, typer.Option(min=1, help="Most draft nodes per step.")] = 32,
    tokenizer: Annotated[str | None, typer.Option(help="A hub id or a folder [default: the profile's].")] = None,
    fit_on: Annotated[
        list[Path] | None,
        typer.Option(help="More answers to fit blend on [default: like-named files beside the data]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay recorded answers without a model: tokens per step of each drafter."""
    from benchmarks import simulation

    read = make_engine(model=tokenizer).tokenizer
    names = list(simulation.REPLAYABLE) if drafter == "all" else [name.strip() for name in drafter.split(",")]
    others = simulation.recorded_beside(data) if fit_on is None else fit_on
    with progress_bars() as progress:
        result = simulation.simulate(read, data, names, max_nodes, others, progress)
    if as_json and len(names) == 1:
        result = result["drafters"][0] | {key: value for key, value in result.items() if key != "drafters"}
    print_result(result, "drafters", as_json)
    if "reliability" in result and not as_json:
        print_result(
            {"conditions": {"folds": result["folds"]}, "reliability": result["reliability"]}, "reliability", False
        )


@cli.command(epilog="Example: python -m benchmarks datastores --answers mt_bench_answers.jsonl --python-sources")
def datastores(
    answers: Annotated[Path, typer.Option(help="A file of recorded answers.")],
    tokenizer: Annotated[str | None, typer.Option(help="A hub id or a folder [default: the profile's].")] = None,
    python_sources: Annotated[bool, typer.Option(help="Also Python sources of installed packages.")] = False,
    limit_mb: Annotated[float, typer.Option(min=0.01, help="Megabytes of Python sources in the corpus.")] = 8.0,
    max_nodes: Annotated[int, typer.Option(min=1, help="Most draft nodes per step.")] = 32,
    as_json: JsonOption = False,
) -> None:
    """Bytes on disk against tokens per step: REST and CREST of many sizes, replayed without a model."""
    from benchmarks import datastore_sizes as benchmark

    read = make_engine(model=tokenizer).tokenizer
    with progress_bars() as progress:
        result = benchmark.run(read, answers, python_sources, int(limit_mb * 10**6), max_nodes, progress)
    print_result(result, "stores", as_json)
    for line in [] if as_json else result["comparison"]:
        out.print(f"{line['corpus']}: {line['says']}")


@cli.command("crest-open", epilog="Example: python -m benchmarks crest-open --datastore ~/datastores/past")
def crest_open(
    datastore: Annotated[Path, typer.Option(help="The folder of a datastore of the kind crest.")],
    lookups: Annotated[int, typer.Option(min=2, help="How many look-ups.")] = 10_000,
    as_json: JsonOption = False,
) -> None:
    """What opening a CREST datastore in a fresh process takes, and looking up in it."""
    from benchmarks import crest_opening as benchmark

    print_result(benchmark.run(datastore, lookups), "stores", as_json)


@cli.command(epilog="Example: python -m benchmarks fit --data llma_rag.jsonl --data llma_cnndm.jsonl")
def fit(
    data: Annotated[list[Path], typer.Option(help="Files of recorded answers.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="Where to write [default: the shipped file].")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="A hub id or a folder [default: the profile's].")] = None,
) -> None:
    """Fit the blend drafter's numbers to recorded answers, and write the JSON file that ships."""
    from benchmarks.fitting import fit as fit_scorer
    from benchmarks.recorded import read_recorded, text_encoder
    from decoding.blend.scorer import SHIPPED, save_scorer
    from decoding.blend.token_table import read_table

    read = make_engine(model=tokenizer).tokenizer
    examples = [example for path in data for example in read_recorded(path, text_encoder(read))]
    target = out_file or SHIPPED
    out.print(f"Fitting to {len(examples)} answers; this takes about ten seconds per hundred.")
    scorer = fit_scorer(examples, read_table(read, len(read)))
    save_scorer(scorer, target, {"data": [path.name for path in data], "answers": len(examples)})
    out.print(f"Wrote {target}")


# Its module is a command by itself, for machines that have a GPU and not the application.
cli.command(epilog="Example: python -m benchmarks gpu --shape llama-3.1-8b --data llma_rag.jsonl --limit 20")(gpu)

# Those whose measurements take several modules have one for the command too.
cli.command(epilog="Example: python -m benchmarks scaling --contexts 512,1024,2048 --chunks 100,200,400")(scaling)
cli.command(epilog="Example: python -m benchmarks perplexity --dtype bfloat16,int8 --tokens 5000")(perplexity)
cli.command("follow-ups", epilog="Example: python -m benchmarks follow-ups --data squad2_dev.json")(follow_ups)
cli.command(epilog="Example: python -m benchmarks relevance --data squad2_dev.json --fit")(relevance)
cli.command(epilog="Example: python -m benchmarks report --data ../shared/data")(report)
cli.command("peers", epilog=EXAMPLE)(peers)
cli.command("vllm", epilog=SERVED_EXAMPLE)(vllm)
cli.command(epilog=INDEX_EXAMPLE)(index)


if __name__ == "__main__":
    run_cli(cli)
