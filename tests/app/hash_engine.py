"""An engine whose encoder needs no model."""

from __future__ import annotations

from pathlib import Path

from app.answering.engine import Engine
from app.setup.settings import Paths, Settings
from tests.hash_encoder import HashEncoder


def hash_engine(home: Path) -> Engine:
    """An engine whose encoder needs no model."""
    engine = Engine(Settings(encoder="hash", device="cpu"), home=Paths(home / "data", home / "cache"))
    engine.encoder = HashEncoder()
    return engine


def encoded(engine: Engine) -> list[str]:
    """The texts that its encoder was given."""
    assert isinstance(engine.encoder, HashEncoder)
    return engine.encoder.encoded
