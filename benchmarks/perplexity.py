"""``python -m benchmarks perplexity``: what a smaller number format costs in quality."""

from __future__ import annotations

from typing import Annotated

import typer

from app.commands.options import DeviceOption, JsonOption, ModelOption, ProfileOption, TargetOption


def perplexity(
    dtypes: Annotated[
        str, typer.Option("--dtype", help="Number formats, comma-separated; float32 is always among them.")
    ] = "float32,bfloat16,int8",
    tokens: Annotated[int, typer.Option(min=2, help="How many tokens to score.")] = 20_000,
    window: Annotated[int, typer.Option(min=2, help="Tokens that are read together.")] = 512,
    target: TargetOption = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Perplexity of the target model on Python's language reference, by number format."""
    from app.commands.command_line import make_engine
    from app.commands.terminal import progress_bars
    from benchmarks import perplexity_run as benchmark
    from benchmarks.listed import words
    from benchmarks.tables import print_result
    from decoding.targets import NUMBER_FORMATS

    names = words(dtypes, tuple(NUMBER_FORMATS), "dtype")
    engine = make_engine(target=target, model=model, device=device, profile=profile)
    with progress_bars() as progress:
        result = benchmark.run(engine, names, tokens, window, progress)
    print_result(result, "formats", as_json)
