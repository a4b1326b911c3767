"""The options that several commands share, one by one and as the set that makes an engine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

ProfileOption = Annotated[str | None, typer.Option(help="laptop (default, needs no hub), desktop or gpu.")]
ModelOption = Annotated[str | None, typer.Option(help="The model that answers: a hub id or a folder.")]
EncoderOption = Annotated[str | None, typer.Option(help="The encoder of questions and passages: a hub id or a folder.")]
RerankerOption = Annotated[str | None, typer.Option(help="late-interaction, none, or a hub id or folder.")]
DeviceOption = Annotated[str | None, typer.Option(help="auto (cuda, then mps, then cpu), or one of them.")]
DtypeOption = Annotated[str | None, typer.Option(help="auto, float32, bfloat16, float16 or int8 (8-bit weights).")]
TargetOption = Annotated[
    str | None, typer.Option(help="auto (default), lean, pytorch (lean, without kernels) or general (transformers').")
]
ExactOption = Annotated[
    bool | None, typer.Option("--exact/--fast", help="Same bits whatever is drafted, on a GPU too; a CPU always does.")
]
IndexOption = Annotated[str | None, typer.Option("--index", "-i", help="Which index to ask (default: python-docs).")]
FinderOption = Annotated[
    str | None,
    typer.Option(
        help="Ask your own code for passages, not an index: package.module:name or path/to/file.py:name, a LangChain "
        "vector store or retriever, an object with find(), or a function that makes one. [bold]It is run.[/bold]"
    ),
]
DatastoreOption = Annotated[str | None, typer.Option(help="What the drafters crest and rest copy from.")]
DrafterOption = Annotated[str | None, typer.Option(help="blend (default), trie, plain, ... An unknown name lists all.")]
DraftModelOption = Annotated[
    str | None,
    typer.Option(help="For draft-model and ouroboros: a smaller model with the same vocabulary, a hub id or a folder."),
]
MaxNodesOption = Annotated[
    int | None, typer.Option(help="Most draft nodes verified in one forward pass (default: by device).")
]
NodeBudgetOption = Annotated[
    str | None, typer.Option(help="adaptive (default: as many nodes as pay, none included) or fixed (always the most).")
]
TopKOption = Annotated[int | None, typer.Option("--top-k", "-k", help="How many passages the model reads.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]

SAMPLING = "Sampling"  # their panel in --help; `decoding.sampling` says which values are allowed
TemperatureOption = Annotated[
    float | None,
    typer.Option(help="0 (default) always takes the likeliest word; higher varies more.", rich_help_panel=SAMPLING),
]
TopPOption = Annotated[
    float | None, typer.Option(help="Draw from the likeliest tokens of this share, 0 to 1.", rich_help_panel=SAMPLING)
]
SampleTopKOption = Annotated[
    int | None, typer.Option(help="Draw from this many likeliest tokens; 0 is all.", rich_help_panel=SAMPLING)
]
MinPOption = Annotated[
    float | None,
    typer.Option(help="Draw from tokens this likely, relative to the likeliest one.", rich_help_panel=SAMPLING),
]
PenaltyOption = Annotated[
    float | None,
    typer.Option(help="Above 1 shuns tokens of prompt and answer, greedy or not.", rich_help_panel=SAMPLING),
]
SeedOption = Annotated[int | None, typer.Option(help="Another seed, another answer.", rich_help_panel=SAMPLING)]
MaxNewTokensOption = Annotated[int | None, typer.Option(help="Longest answer, in tokens (default: 160).")]

REMOTE = "Another server as the generator"
EngineOption = Annotated[
    str | None,
    typer.Option(
        help="local (default), or openai: a server of that protocol; for batch also ray.", rich_help_panel=REMOTE
    ),
]
BaseUrlOption = Annotated[
    str | None, typer.Option(help="Its address, such as http://127.0.0.1:8000/v1.", rich_help_panel=REMOTE)
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(help="Its key; better in QUOTEWRIGHT_API_KEY, which no list shows.", rich_help_panel=REMOTE),
]
RemoteModelOption = Annotated[
    str | None, typer.Option(help="Which of its models (default: the only one).", rich_help_panel=REMOTE)
]
HostOption = Annotated[str, typer.Option(help="Address to serve on; other machines cannot reach 127.0.0.1.")]
PortOption = Annotated[int, typer.Option(min=1, max=65535, help="Port to serve on.")]
AuthOption = Annotated[
    bool | None,
    typer.Option("--auth/--no-auth", help="Let only those use the page who were added with `users add`."),
]

SPREAD = "Several processes or machines: Ray"
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        help="With --engine ray: a running cluster's HOST:PORT, or auto; if not given, Ray is started here for this "
        "command.",
        rich_help_panel=SPREAD,
    ),
]
ActorsOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="With --engine ray: how many, each with its own model (default: as many as fit).",
        rich_help_panel=SPREAD,
    ),
]  # fmt: skip

ENGINE_OPTIONS: dict[str, Any] = {
    "index": IndexOption,
    "finder": FinderOption,
    "drafter": DrafterOption,
    "datastore": DatastoreOption,
    "draft_model": DraftModelOption,
    "profile": ProfileOption,
    "max_new_tokens": MaxNewTokensOption,
    "max_nodes": MaxNodesOption,
    "node_budget": NodeBudgetOption,
    "top_k": TopKOption,
    "model": ModelOption,
    "encoder": EncoderOption,
    "reranker": RerankerOption,
    "device": DeviceOption,
    "dtype": DtypeOption,
    "target": TargetOption,
    "exact": ExactOption,
    "temperature": TemperatureOption,
    "top_p": TopPOption,
    "sample_top_k": SampleTopKOption,
    "min_p": MinPOption,
    "repetition_penalty": PenaltyOption,
    "seed": SeedOption,
    "engine": EngineOption,
    "base_url": BaseUrlOption,
    "api_key": ApiKeyOption,
    "remote_model": RemoteModelOption,
}
EngineFlags = dict[str, Any]  # what of ENGINE_OPTIONS somebody chose, by the names of `app.setup.settings`


def takes_engine_flags(command: Callable[..., None]) -> Callable[..., None]:
    """A command with all of ENGINE_OPTIONS where its parameter `flags` stands, which gets their values."""
    taken = inspect.signature(command, eval_str=True).parameters
    parameters: list[inspect.Parameter] = []
    for name, parameter in taken.items():
        if name == "flags":
            options = ENGINE_OPTIONS.items()
            parameters += [
                inspect.Parameter(option, parameter.KEYWORD_ONLY, default=None, annotation=annotation)
                for option, annotation in options
            ]
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))

    def run(**values: Any) -> None:
        flags = {name: values.pop(name) for name in ENGINE_OPTIONS}
        command(**values, flags=flags)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run
