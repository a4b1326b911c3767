"""The smallest pieces of the page's HTML.

Every character of a question, an answer, a document or a file name that is not a letter, a digit or a space becomes
a numeric entity, so that neither HTML nor Markdown nor a template can find anything in it to interpret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_WRAPPED = re.compile(r"^\S.{49,}\n(?=[\w\"'“‘(*])", re.MULTILINE)


def escape(text: str) -> str:
    """The text as HTML that shows it and nothing else; line breaks stay line breaks."""
    return "".join(map(_entity, text.replace("\r\n", "\n")))


def attribute(text: str) -> str:
    """The text as an attribute's value, to be put between double quotes."""
    return escape(text).replace("<br>", "&#10;")


def _entity(character: str) -> str:
    if character.isalnum() or character == " ":
        return character
    if character == "\n":
        return "<br>"
    return f"&#{ord(character)};" if character.isprintable() or ord(character) > 127 else "&#65533;"


def unwrapped(text: str) -> str:
    """The text with spaces for the line breaks of lines that were cut at a width; no character moves."""
    return _WRAPPED.sub(lambda found: f"{found[0][:-1]} ", text)


def button(label: str, do: str, name: str = "", **data: object) -> str:
    """A button that has the page do something; `name` is what a screen reader calls it, if not as it is labelled."""
    named = f' aria-label="{attribute(name)}" title="{attribute(name)}"' if name else ""
    values = "".join(f' data-{key}="{attribute(str(value))}"' for key, value in data.items())
    return f'<button type="button" class="qw-do" data-do="{do}"{named}{values}>{escape(label)}</button>'


def error_html(message: str) -> str:
    """What went wrong, in words."""
    return f'<div class="qw-error" role="alert">{escape(message)}</div>'


def hint_html(message: str) -> str:
    """What will stand here, or what to do."""
    return f'<div class="qw-hint">{escape(message)}</div>'


def report_html(summary: str, problems: Mapping[str, str]) -> str:
    """What a task did, and which files it could not use and why."""
    lines = "".join(f"<li><bdi>{escape(name)}</bdi>: {escape(reason)}</li>" for name, reason in problems.items())
    listed = f"<ul>{lines}</ul>" if lines else ""
    return f'<div class="qw-report" role="status">{escape(summary)}{listed}</div>'
