"""The options that several benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataOption = Annotated[Path, typer.Option(help="The data file.")]
FormatOption = Annotated[str | None, typer.Option("--data-format", help="spec-bench or llma; detected if not given.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first so many questions.")]
TokensOption = Annotated[int, typer.Option(min=2, help="Longest answer, in tokens.")]
NodesOption = Annotated[int | None, typer.Option(help="Most draft nodes verified in one forward pass.")]
