"""``python -m benchmarks gpu``: speed of the lean target on a device, without weights and without a network.

Also a command by itself, ``python -m benchmarks.gpu --tokenizer FOLDER --data FILE``, where the application is not
installed: it needs torch, transformers, triton (on a GPU), numba, pydivsufsort, typer, rich, jinja2, filelock and a
folder with a tokenizer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from indexes.errors import QuotewrightError


def gpu(
    data: Annotated[list[Path], typer.Option(help="A file of recorded answers; may be given several times.")],
    shape: Annotated[
        str, typer.Option(help="llama-3.1-8b, qwen2.5-7b, qwen2.5-1.5b, smollm2-135m or tiny.")
    ] = "llama-3.1-8b",
    tokenizer: Annotated[str | None, typer.Option(help="A folder, or a model [default: the profile's].")] = None,
    device: Annotated[str | None, typer.Option(help="cuda or cpu [default: cuda where there is one].")] = None,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    nodes: Annotated[str, typer.Option(help="Fixed budgets: 0, then what fills a bucket of rows.")] = "0,7,15,31,63",
    contexts: Annotated[str, typer.Option(help="Tokens before the timed steps.")] = "1000,2000,4000",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many answers of each file.")] = None,
    exact: Annotated[bool, typer.Option(help="Bits that do not depend on the draft.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Step times and replayed answers of a model's shape with random weights: needs no weights, no network."""
    from benchmarks import gpu_run as benchmark
    from benchmarks.listed import numbers
    from benchmarks.tables import print_result

    sizes, lengths = numbers("nodes", nodes), numbers("contexts", contexts)
    setting = benchmark.Setting(shape, device, dtype, sizes, lengths, limit, exact)
    result = benchmark.run(_tokenizer(tokenizer), data, setting, lambda message: typer.echo(message, err=True))
    print_result(result, "steps", as_json)
    if not as_json:
        print_result({"conditions": {"without prefill": "yes"}, "answers": result["answers"]}, "answers", False)


def _tokenizer(chosen: str | None) -> Any:
    """From a folder without the application, else as it finds models."""
    if chosen and Path(chosen).is_dir():
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(chosen, local_files_only=True)
    from app.commands.command_line import make_engine

    return make_engine(model=chosen).tokenizer


if __name__ == "__main__":
    try:
        typer.run(gpu)
    except QuotewrightError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
