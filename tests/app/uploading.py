"""What tests of uploads share: two people, and files sent by the first."""

from __future__ import annotations

from pathlib import Path

from app.answering.engine import Engine
from app.documents.uploads import add_uploads, list_uploads

TOKEN, OTHER = "0" * 32, "1" * 32


def upload_texts(engine: Engine, folder: Path, **files: str) -> dict[str, str]:
    """Write and send these texts; returns what could not be read."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return add_uploads(engine, TOKEN, [folder / f"{name}.txt" for name in files]).skipped


def kept(engine: Engine) -> list[str]:
    """The names of the files that are kept."""
    return sorted(file.name for file in (engine.paths.uploads / TOKEN / "uploads").iterdir())


def listed(engine: Engine, token: str = TOKEN) -> list[str]:
    """The sources in somebody's list."""
    return [upload.facts.source for upload in list_uploads(engine, token)]
