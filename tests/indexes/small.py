"""A small index to damage."""

from __future__ import annotations

import hashlib
from pathlib import Path

from indexes.passages import Document
from indexes.store import IndexSettings
from retrieval.indexing import build_index
from tests.hash_encoder import HashEncoder

SETTINGS = IndexSettings("hash", 33, 100, True, ("notes", "na\udcffme"))


def no_progress(what: str, done: int, total: int) -> None:
    """Says nothing."""


def document(source: str, text: str) -> Document:
    return Document(source, source, text, hashlib.sha256(text.encode()).hexdigest())


def build(folder: Path) -> Path:
    build_index(folder, SETTINGS, [document("a", "one")], HashEncoder(), no_progress)
    return folder
