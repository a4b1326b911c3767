"""Compiled functions, kept on disk for as long as neither they nor what they call have changed.

numba drops a kept function when its own file changes. But the functions that it calls are built into it, constants and
all, so after an update it would go on as the old ones did, or read past the end of an array whose length has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[F], F]:
    """Compile a function when it is first called. Its module must import the compiled functions that it calls.

    `options` are those of numba.njit.
    """

    def decorate(function: F) -> F:
        dispatcher: Any = njit(**options)(function)
        with contextlib.suppress(RuntimeError):  # no folder to keep it in: it is compiled in every process
            dispatcher.enable_caching()
            _forgive(dispatcher._cache)
        if kept := _kept(dispatcher):
            imported = {name: _kept(value) for name, value in function.__globals__.items()}
            stamps = {name: other._source_stamp for name, other in sorted(imported.items()) if other}
            kept._source_stamp = (kept._source_stamp, tuple(stamps.items()))
        done: F = dispatcher
        return done

    return decorate


def _forgive(cache: Any) -> None:
    """Compile anew what a torn file was kept in, and go on without keeping where the disk is full."""
    load, save = cache.load_overload, cache.save_overload

    def load_or_drop(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # unpickling what a power cut left raises anything
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    def save_or_not(*arguments: Any) -> None:
        with contextlib.suppress(OSError):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_or_drop, save_or_not


def _kept(value: Any) -> Any:
    """numba's file of a compiled function, which is not part of its public interface; None for anything else."""
    return getattr(getattr(value, "_cache", None), "_cache_file", None)
