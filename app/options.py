"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

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
IndexOption = Annotated[str | None, typer.Option("--index", "-i", help="Which index to ask [default: python-docs].")]
DatastoreOption = Annotated[str | None, typer.Option(help="What the drafters crest and rest copy from.")]
DrafterOption = Annotated[str | None, typer.Option(help="blend (default), trie, plain, ... An unknown name lists all.")]
DraftModelOption = Annotated[
    str | None,
    typer.Option(help="For draft-model and ouroboros: a smaller model with the same vocabulary, a hub id or a folder."),
]
MaxNodesOption = Annotated[
    int | None, typer.Option(help="Most draft nodes verified in one forward pass [default: by device].")
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
