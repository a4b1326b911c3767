"""How a benchmark's result is shown: a table for people, JSON for programs."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(highlight=False)


def print_result(result: dict[str, Any], rows: str, as_json: bool) -> None:
    """The conditions, and `result[rows]` as a table; or all of `result` as JSON."""
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
        return
    out.print(", ".join(f"{name}: {value}" for name, value in result["conditions"].items()), style="dim")
    lines: list[dict[str, Any]] = result[rows]
    columns = list(dict.fromkeys(name for line in lines for name in line))
    table = Table(*columns)
    for line in lines:
        table.add_row(*(_cell(line.get(column, "")) for column in columns))
    out.print(table)


def _cell(value: Any) -> str:
    return " / ".join(map(str, value.values())) if isinstance(value, dict) else str(value)
