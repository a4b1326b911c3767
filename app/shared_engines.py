"""Engines that several objects of one program share: equal settings, one engine, and so one model in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.settings import load_settings, paths

if TYPE_CHECKING:
    from app.engine import Engine

OF_PROFILE = ("model", "encoder", "reranker", "top_k", "chunk_chars")  # the same, said or left to the profile

log = logging.getLogger("quotewright")

_engines: dict[str, Engine] = {}
_lock = threading.Lock()


def shared_engine(settings: Mapping[str, Any]) -> Engine:
    """The engine for these settings, which load nothing before they are used. Raises SettingError."""
    from app.engine import Engine

    chosen, home = load_settings(**settings), paths()
    profile = {name: getattr(chosen.resolved(), name) for name in OF_PROFILE}
    key = f"{home}{chosen.model_copy(update=profile).model_dump_json()}"
    with _lock:
        if key not in _engines:
            _engines[key] = Engine(chosen, log.info, home)
        return _engines[key]


def drop_engines() -> None:
    """Forget all engines: what no object still uses leaves memory."""
    with _lock:
        _engines.clear()
