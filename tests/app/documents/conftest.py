"""What tests of indexes and of their documents share."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.documents.indexing import index_files
from tests.app.hash_engine import hash_engine


@pytest.fixture
def made(tmp_path: Path, notes: Path) -> tuple[Engine, Path]:
    """An engine, and an index of `notes`."""
    engine = hash_engine(tmp_path)
    folder = engine.paths.indexes / "notes"
    index_files(engine, folder, [notes])
    return engine, folder
