"""Reads what `trace` compares: an answer and passages from files that other programs wrote."""

from __future__ import annotations

import json
from pathlib import Path

from indexes.errors import SettingError


def read_text(path: Path) -> str:
    """A UTF-8 text file, its line ends as they are, for spans count them. Raises SettingError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read as UTF-8 text: {error}") from error


def read_passages(path: Path) -> list[tuple[str, str]]:
    """(id, text) pairs from JSON lines, in their order. Raises SettingError naming the line."""
    passages: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SettingError(f"{path}, line {number} is not JSON: {error}") from error
        if not isinstance(item, dict) or not isinstance(item.get("text"), str) or "id" not in item:
            raise SettingError(f'{path}, line {number} must be an object with "id" and "text"')
        passages.append((str(item["id"]), item["text"]))
    return passages
