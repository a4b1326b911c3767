"""Engines that several objects of one program share: equal settings, one engine, and so one model in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.setup.settings import Paths, load_settings, paths

if TYPE_CHECKING:
    from app.answering.engine import Engine

OF_PROFILE = ("model", "encoder", "reranker", "top_k", "chunk_chars")  # the same, said or left to the profile

log = logging.getLogger("quotewright")

_engines: list[tuple[Paths, dict[str, Any], Engine]] = []
_lock = threading.Lock()


def shared_engine(settings: Mapping[str, Any]) -> Engine:
    """The engine for these settings, which loads nothing before it is used. Raises SettingError."""
    from app.answering.engine import Engine

    chosen, home = load_settings(**settings), paths()
    profile = chosen.resolved()
    same = dict(chosen) | {name: getattr(profile, name) for name in OF_PROFILE}
    with _lock:
        for place, kept, engine in _engines:
            if (place, kept) == (home, same):
                return engine
        _engines.append((home, same, Engine(chosen, log.info, home)))
        return _engines[-1][2]


def drop_engines() -> None:
    """Forget all engines: what no object still uses leaves memory."""
    with _lock:
        _engines.clear()
