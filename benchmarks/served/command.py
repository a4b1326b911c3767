"""The command line of the comparison inside vLLM: what to ask, how many at once, how often."""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.command_line import make_engine
from app.commands.options import JsonOption
from app.commands.terminal import progress_bars, say
from benchmarks.options import FormatOption, LimitOption, TokensOption
from benchmarks.tables import print_result
from indexes.errors import SettingError

if TYPE_CHECKING:
    from benchmarks.peers.methods import Homes
    from benchmarks.served.measuring import Measured, Plan

EXAMPLE = "Example: python -m benchmarks vllm --data spec_bench_rag.jsonl --limit 12 --concurrency 1,4,16"


def vllm(
    data: Annotated[Path, typer.Option(help="The data file.")],
    concurrency: Annotated[str, typer.Option(help="Comma-separated: requests at once.")] = "1,4,16",
    methods: Annotated[str, typer.Option(help="Comma-separated.")] = "plain,n-gram,suffix,ours",
    runs: Annotated[int, typer.Option(min=1, help="How often to ask all prompts.")] = 1,
    identity: Annotated[bool, typer.Option(help="Then compare answers in float32, too.")] = True,
    data_format: FormatOption = None,
    limit: LimitOption = None,
    max_new_tokens: TokensOption = 128,
    draft_tokens: Annotated[int, typer.Option(min=1, max=256, help="Our longest chain.")] = 24,
    dtype: Annotated[str, typer.Option(help="The number format of the speed figures.")] = "bfloat16",
    threads: Annotated[int, typer.Option(min=1, help="Threads of every engine.")] = 2,
    vllm_python: Annotated[Path | None, typer.Option(help="An interpreter that has vLLM.")] = None,
    answer_timeout: Annotated[float, typer.Option(min=1, help="Seconds that one answer may take.")] = 120,
    load_timeout: Annotated[float, typer.Option(min=1, help="Seconds that loading an engine may take.")] = 600,
    as_json: JsonOption = False,
) -> None:
    """Our drafter inside vLLM against plain, n-gram and suffix decoding there; exit code 1 if float32 answers differ.

    Made for vLLM's CPU build, in the environment that `python -m benchmarks peers --install` makes.
    """
    from app.setup.profiles import SMOLLM2
    from benchmarks.data import read_prompts
    from benchmarks.decode import make_request
    from benchmarks.listed import numbers, words
    from benchmarks.served.figures import comparisons, lines
    from benchmarks.served.measuring import METHODS, OURS, PLAIN, Plan, measure

    chosen = list(dict.fromkeys([PLAIN, *words(methods, METHODS, "methods")]))
    levels = list(dict.fromkeys(numbers("--concurrency", concurrency, least=1)))
    homes = _homes(vllm_python)
    engine = make_engine(dtype="float32", model=SMOLLM2, device="cpu")
    requests = [make_request(engine, one, max_new_tokens) for one in read_prompts(data, data_format, limit)]
    plan = Plan(
        [request.draft.prompt for request in requests], sorted(engine.stop_tokens), levels, runs, max_new_tokens,
        draft_tokens, threads, answer_timeout, load_timeout,
    )  # fmt: skip
    load = round(os.getloadavg()[0], 2)
    with progress_bars() as progress:
        found = measure(plan, chosen, engine.model_folder, dtype, homes, say, progress)
        pair = [method for method in (PLAIN, OURS) if method in chosen]
        exact = measure(plan, pair, engine.model_folder, "float32", homes, say, progress) if identity else None
    failed = found.failed | {f"{method}, float32": why for method, why in (exact.failed if exact else {}).items()}
    result: dict[str, Any] = {
        "conditions": _conditions(plan, found, data.name, dtype, load, engine.profile.model),
        "methods": lines(found.passes),
        "comparisons": comparisons(found.passes),
        "identity": _identity(exact) if exact else [],
        "failed": failed,
    }
    _show(result, as_json)
    if failed or any(line["identical_to_plain"] != line["answers"] for line in result["identity"]):
        sys.exit(1)


def _homes(python: Path | None) -> Homes:
    from app.setup.settings import paths
    from benchmarks.peers.methods import Homes, missing_peers

    homes = Homes(paths().cache / "peers", {"vllm": python} if python else {})
    if missing := missing_peers(["vllm-plain"], homes):
        raise SettingError("\n".join(map(str, missing)))
    return homes


def _conditions(plan: Plan, found: Measured, data: str, dtype: str, load: float, model: str) -> dict[str, Any]:
    from benchmarks.conditions import conditions

    return conditions(
        data=data,
        questions=len(plan.prompts),
        prompt_tokens_mean=round(statistics.mean(map(len, plan.prompts))),
        max_new_tokens=plan.max_new_tokens,
        runs=plan.rounds,
        threads_each=plan.threads,
        dtype=dtype,
        load_average_before=load,
        model=model,
        **found.engines,
    )


def _identity(exact: Measured) -> list[dict[str, Any]]:
    """Answers in float32 that are those of plain decoding, one request at a time if that was measured."""
    from benchmarks.served.figures import identical

    keys = dict.fromkeys((one.at_once, one.method) for one in exact.passes)
    found = []
    for level, method in keys:
        own = [one for one in exact.passes if (one.at_once, one.method) == (level, method)]
        same, compared = identical(own, exact.passes)
        found.append({"at_once": level, "method": method, "answers": compared, "identical_to_plain": same})
    return found


def _show(result: dict[str, Any], as_json: bool) -> None:
    for method, why in result["failed"].items():
        say(f"Failed: {method}: {why}")
    if as_json:
        print_result(result, "methods", True)
        return
    print_result(result, "methods", False)
    for key in ("comparisons", "identity"):
        if result[key]:
            print_result({"conditions": {}, key: result[key]}, key, False)
