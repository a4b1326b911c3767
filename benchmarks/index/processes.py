"""A stage of a benchmark in a process of its own, so that its memory and its start are its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from indexes.errors import QuotewrightError
from retrieval.indexing import Progress


def apart(progress: Progress, stage: Callable[..., Any], *arguments: Any) -> Any:
    """What `stage(progress, *arguments)` returns in a new process. Raises QuotewrightError saying what it raised."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(its, stage, arguments), daemon=True)
    process.start()
    its.close()
    try:
        while True:
            kind, value = ours.recv()
            if kind == "progress":
                progress(*value)
            elif kind == "done":
                return value
            else:
                raise QuotewrightError(f"{stage.__name__} failed: {value}")
    except EOFError:
        process.join()
        raise QuotewrightError(
            f"the process of {stage.__name__} died (exit code {process.exitcode}); is memory short?"
        ) from None
    finally:
        process.kill()
        process.join()


def _run(its: Connection, stage: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        its.send(("done", stage(lambda *said: its.send(("progress", said)), *arguments)))
    except Exception as error:  # whatever it was, the parent says so
        its.send(("failed", f"{type(error).__name__}: {error}"))
