"""How a benchmark's result is printed: a table under its conditions for people, one JSON object for programs."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from app.terminal import out


def print_result(result: dict[str, Any], rows: str, as_json: bool) -> None:
    """Print all of it as JSON, or its conditions and the table of its `rows`."""
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
