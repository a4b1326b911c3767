"""Files that somebody uploads on the chat page: kept and indexed apart, under a token that only their browser holds."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from app.engine import Engine
from app.indexing import index_files
from indexes.errors import NothingToIndexError, SettingError
from retrieval.indexing import Progress, Report

INDEX_NAME = "my-uploads"


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_hex(16)


def is_token(value: object) -> bool:
    """Whether `value`, which comes from a browser, can be a token."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def private_index(engine: Engine, token: str) -> Path:
    """The folder of a browser's private index. Raises SettingError for what is no token."""
    if not is_token(token):
        raise SettingError("this browser has no token yet; reload the page")
    return engine.paths.uploads / token / INDEX_NAME


def add_uploads(engine: Engine, token: str, files: Sequence[Path], progress: Progress) -> Report:
    """Keep the uploaded files, index them with those uploaded before, and remove the temporary ones.

    A file that cannot be read is listed in the report and not kept.
    """
    folder = private_index(engine, token)
    kept = folder.parent / "uploads"
    kept.mkdir(parents=True, exist_ok=True)
    moved = [Path(shutil.move(file, kept / file.name)) for file in files]
    try:
        report = index_files(engine, folder, [kept], progress)
    except NothingToIndexError:
        for file in moved:
            file.unlink(missing_ok=True)
        raise
    for name in report.skipped:
        Path(name).unlink(missing_ok=True)
    report.skipped = {Path(name).name: reason for name, reason in report.skipped.items()}
    return report
