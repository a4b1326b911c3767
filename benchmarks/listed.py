"""Options that take several values with commas between."""

from __future__ import annotations

from collections.abc import Sequence

from indexes.errors import SettingError


def numbers(name: str, text: str, least: int = 0) -> list[int]:
    """The numbers in their order. Raises SettingError, naming the option, for anything else or below `least`."""
    parts = words(text)
    if not parts or not all(part.isdecimal() and int(part) >= least for part in parts):
        raise SettingError(f"{name} is {text!r}; it must be numbers with commas between, none below {least}")
    return [int(part) for part in parts]


def words(text: str, allowed: Sequence[str] | None = None, name: str = "") -> list[str]:
    """The words in their order. Raises SettingError, naming the option, for one that is not allowed."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if allowed is not None and (not parts or not set(parts) <= set(allowed)):
        raise SettingError(f"{name} is {text!r}; it must be some of {', '.join(allowed)} with commas between")
    return parts
