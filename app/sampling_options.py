"""The flags that say how the target's words are chosen; `decoding.sampling` says which values are allowed."""

from __future__ import annotations

from typing import Annotated

import typer

SAMPLING = "Sampling"
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
