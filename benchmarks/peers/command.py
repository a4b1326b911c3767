"""The command line of the comparison: what to ask, where the others are installed, how long they may take."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.command_line import make_engine
from app.commands.options import JsonOption
from app.commands.terminal import out, progress_bars, say
from benchmarks.options import FormatOption, LimitOption, TokensOption
from benchmarks.tables import print_result
from indexes.errors import SettingError

if TYPE_CHECKING:
    from app.answering.engine import Engine
    from benchmarks.peers.methods import Homes

EXAMPLE = "Example: python -m benchmarks peers --data spec_bench_rag.jsonl --limit 12"


def peers(
    data: Annotated[Path | None, typer.Option(help="The data file.")] = None,
    install: Annotated[bool, typer.Option("--install", help="Install the other engines, and end.")] = False,
    methods: Annotated[
        str | None,
        typer.Option(help="Comma-separated; ours with a dtype: blend:int8. All that are available if not given."),
    ] = None,
    data_format: FormatOption = None,
    limit: LimitOption = None,
    max_new_tokens: TokensOption = 128,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every engine.")] = 2,
    vllm_python: Annotated[Path | None, typer.Option(help="An interpreter that has vLLM.")] = None,
    llamacpp_python: Annotated[Path | None, typer.Option(help="An interpreter that has llama-cpp-python.")] = None,
    answer_timeout: Annotated[float, typer.Option(min=1, help="Seconds that one answer may take.")] = 120,
    load_timeout: Annotated[float, typer.Option(min=1, help="Seconds that loading an engine may take.")] = 600,
    as_json: JsonOption = False,
) -> None:
    """Our speed against transformers', vLLM's and llama.cpp's: same model, same tokens, interleaved per question."""
    from benchmarks.data import read_prompts
    from benchmarks.peers.measuring import Limits, Setting, measure
    from benchmarks.peers.methods import choose

    homes = _homes({"vllm": vllm_python, "llamacpp": llamacpp_python})
    if install:
        _install(homes)
        return
    if data is None:
        raise SettingError("a comparison needs questions: --data FILE (or --install, to install the other engines)")
    examples = read_prompts(data, data_format, limit)
    names = [name.strip() for name in (methods or "").split(",") if name.strip()]
    chosen, missing = choose(names, homes, _engine_of)
    for item in missing:
        say(f"Missing: {item}")
    limits = Limits(threads, max_new_tokens, answer_timeout, load_timeout)
    with progress_bars() as progress:
        result = measure(Setting(_engine_of, homes, limits, say), chosen, missing, data.name, examples, progress)
    for method, why in result["failed"].items():
        say(f"Failed: {method}: {why}")
    if as_json:
        print_result(result, "methods", True)
    else:
        narrow = [{name: line[name] for name in line if name != "tokens_per_s_spread"} for line in result["methods"]]
        print_result(result | {"methods": narrow}, "methods", False)
        print_result({"conditions": {}, "comparisons": result["comparisons"]}, "comparisons", False)


@functools.cache
def _engine_of(dtype: str) -> Engine:
    """One engine per number format; all of the same model, and on the processor, where the others are."""
    from app.setup.profiles import SMOLLM2

    return make_engine(dtype=dtype, model=SMOLLM2, device="cpu")


def _homes(pythons: dict[str, Path | None]) -> Homes:
    from app.setup.settings import paths
    from benchmarks.peers.methods import Homes

    return Homes(paths().cache / "peers", {name: python for name, python in pythons.items() if python})


def _install(homes: Homes) -> None:
    from benchmarks.peers.environments import ENVIRONMENTS, install, installed
    from benchmarks.peers.methods import gguf_file

    for environment in ENVIRONMENTS.values():
        folder = homes.folder(environment)
        if not installed(environment, folder):
            install(environment, folder, say)
        out.print(f"{environment.name} is installed in {folder}", soft_wrap=True)
    out.print(f"The model as GGUF: {gguf_file(homes.root, say)}", soft_wrap=True)
