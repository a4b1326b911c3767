"""Runs one foreign engine in its own interpreter: JSON lines in, JSON lines out, and the clock.

Usage: PYTHON serve.py ENGINE.py, where ENGINE.py is one of the files beside this one, or any with
`load(options) -> (engine, settings)` and `engine.answer(prompt, max_new_tokens, stop)`, an iterator of
(new tokens, forward passes so far, the prompt's included as one; None if the engine does not tell).

    <- {"threads": 2, ...}                                     -> {"ready": {...}}
    <- {"prompt": [...], "max_new_tokens": 128, "stop": [2]}   -> {"tokens": [...], "first": 1, "passes": 40,
                                                                  "first_s": 0.9, "decode_s": 1.2}
    <- {"prompts": [[...], ...], "at_once": 4, "forget": true, ...}  -> {"answers": [as above, ...], "seconds": 5.1}
    end of input: end

Many prompts go to `engine.answer_all(prompts, at_once, max_new_tokens, stop)`, an iterator of (prompt's number, new
tokens; none when it is begun), after `engine.forget()` if that is asked for.

Knows nothing of Quotewright and imports the standard library only: it is started by interpreters that have neither.
Whatever engines print goes to stderr; an error ends the process with its traceback there.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1


def serve(path: str) -> None:
    """Load the engine and answer until the input ends."""
    _end_with_parent()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # engines print as they like
    spec = importlib.util.spec_from_file_location("engine", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    engine, settings = module.load(json.loads(sys.stdin.readline()))
    _say(replies, {"ready": settings})
    for line in sys.stdin:
        request = json.loads(line)
        _say(replies, _timed_all(engine, request) if "prompts" in request else _timed(engine, request))


def _timed_all(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    if request["forget"]:
        engine.forget()
    answers: list[dict[str, Any]] = [{"tokens": [], "first": 0, "passes": -1} for _ in request["prompts"]]
    began = time.perf_counter()
    for number, new in engine.answer_all(
        request["prompts"], request["at_once"], request["max_new_tokens"], request["stop"]
    ):
        now, answer = time.perf_counter(), answers[number]
        if not new:
            answer["begun"] = now
            continue
        if not answer["tokens"]:
            answer["first"], answer["first_s"], answer["at"] = len(new), now - answer["begun"], now
        answer["tokens"] += new
        answer["passes"] += 1
        answer["decode_s"] = now - answer["at"]
    return {"answers": answers, "seconds": time.perf_counter() - began}


def _timed(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    first_at, first, passes = began, 0, 0
    tokens: list[int] = []
    for new, passes in engine.answer(request["prompt"], request["max_new_tokens"], request["stop"]):  # noqa: B007
        if not tokens:
            first_at, first = time.perf_counter(), len(new)
        tokens += new
    end = time.perf_counter()
    return {
        "tokens": tokens,
        "first": first,
        "passes": None if passes is None else passes - 1,
        "first_s": first_at - began,
        "decode_s": end - first_at,
    }


def _say(replies: Any, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def _end_with_parent() -> None:
    """Even a stopped worker ends when the benchmark is killed; the kernel sees to it, where it is Linux."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the benchmark has ended")


if __name__ == "__main__":
    serve(sys.argv[1])
