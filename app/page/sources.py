"""What can be asked on the page: the named indexes that everybody has, and a person's own uploads."""

from __future__ import annotations

from pathlib import Path

from app.answering.engine import Engine
from app.documents import uploads
from indexes.errors import SettingError
from indexes.store import check_name, names

UPLOADS = ":uploads"  # cannot be the name of an index
MY_UPLOADS = "My documents"

Choices = list[tuple[str, str]]


def folder(engine: Engine, person: str, source: object) -> Path:
    """The folder of an index that this person may ask. Raises SettingError."""
    if source == UPLOADS:
        return uploads.private_index(engine, person)
    if not source:
        raise SettingError("choose which documents to ask")
    return engine.paths.indexes / check_name(str(source))


def choices(engine: Engine, person: str) -> Choices:
    """What this person may ask, as (what it is called, value) pairs."""
    named = [(name, name) for name in names(engine.paths.indexes)]
    return [*named, (MY_UPLOADS, UPLOADS)] if uploads.has_uploads(engine, person) else named


def choosable(engine: Engine, person: str, source: str) -> str:
    """`source`, or what is asked by default if that is not there any more."""
    values = [value for _, value in choices(engine, person)]
    return source if source in values else engine.settings.index
