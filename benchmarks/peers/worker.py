"""A foreign engine in a process of its own, spoken to in JSON lines; stopped by signal while it has nothing to do.

An engine's idle threads may spin, and would slow whoever is measured next: SIGSTOP to the process group ends all
doubt. POSIX only. Knows nothing of what the engine is; `workers/serve.py` is the other end, and holds the clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

SERVE = Path(__file__).parent / "workers" / "serve.py"
TAIL_LINES = 12
ANSWER = {"tokens", "first", "passes", "first_s", "decode_s"}


class WorkerError(Exception):
    """A worker crashed, was too slow or answered nonsense; the message ends with its last lines on stderr."""


class Worker:
    """One foreign engine: `load` once, then `ask`; `close` kills it and whatever it started."""

    def __init__(self, python: Path, engine: Path, environment: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._unread = b""
        try:
            self._process = subprocess.Popen(
                [str(python), str(SERVE), str(engine)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=dict(environment),
                start_new_session=True,  # a group of its own: signals reach its children, and Ctrl-C only us
            )
        except OSError as error:
            self._errors.close()
            raise WorkerError(f"{python} cannot be started: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The number of its process, and of its process group."""
        return self._process.pid

    def load(self, options: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Load the engine; returns what it says of itself. Raises WorkerError."""
        answer = self._exchange(options, timeout_s)
        if not isinstance(answer.get("ready"), dict):
            raise WorkerError(self._because(f"did not say that it is ready, but {str(answer)[:200]}"))
        self._signal(signal.SIGSTOP)
        ready: dict[str, Any] = answer["ready"]
        return ready

    def ask(self, prompt: Sequence[int], max_new_tokens: int, stop: Sequence[int], timeout_s: float) -> dict[str, Any]:
        """Have one prompt answered: tokens, first, passes, first_s and decode_s. Raises WorkerError."""
        answer = self._asked({"prompt": list(prompt), "max_new_tokens": max_new_tokens, "stop": list(stop)}, timeout_s)
        self._complete(answer, ANSWER)
        return answer

    def ask_all(
        self,
        prompts: Sequence[Sequence[int]],
        at_once: int,
        max_new_tokens: int,
        stop: Sequence[int],
        timeout_s: float,
        forget: bool = False,
    ) -> dict[str, Any]:
        """Have prompts answered, so many at once: `answers` as of `ask`, and `seconds` for all. Raises WorkerError.

        `forget`: what past answers taught the engine is forgotten first.
        """
        question = {"prompts": [list(prompt) for prompt in prompts], "at_once": at_once, "forget": forget}
        answer = self._asked(question | {"max_new_tokens": max_new_tokens, "stop": list(stop)}, timeout_s)
        self._complete(answer, {"answers", "seconds"})
        for one in answer["answers"]:
            self._complete(one, ANSWER)
        return answer

    def _asked(self, question: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        self._signal(signal.SIGCONT)
        answer = self._exchange(question, timeout_s)
        self._signal(signal.SIGSTOP)
        return answer

    def _complete(self, answer: Mapping[str, Any], wanted: set[str]) -> None:
        if missing := wanted - answer.keys():
            raise WorkerError(self._because(f"answered without {', '.join(sorted(missing))}"))

    def close(self) -> None:
        """Kill the whole process group, stopped or not."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream
            with contextlib.suppress(BrokenPipeError):  # what it never read
                stream.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended, which the next exchange says better
            os.killpg(self._process.pid, number)

    def _exchange(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise WorkerError(self._because("ended")) from error
        line = self._line(time.monotonic() + timeout_s, timeout_s)
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise WorkerError(self._because(f"answered what is no JSON: {line[:200]!r}")) from error
        if not isinstance(answer, dict):
            raise WorkerError(self._because(f"answered what is no object: {line[:200]!r}"))
        return answer

    def _line(self, deadline: float, timeout_s: float) -> bytes:
        assert self._process.stdout
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise WorkerError(self._because(f"did not answer within {timeout_s:g} seconds"))
            if not (read := os.read(pipe, 1 << 16)):
                raise WorkerError(self._because("ended"))
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _because(self, what: str) -> str:
        """`what`, how the process ended if it did, and the last it said; it is killed, being of no more use."""
        try:
            code: int | None = self._process.wait(timeout=1 if what == "ended" else 0)
        except subprocess.TimeoutExpired:
            code = None
        self._signal(signal.SIGKILL)
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
        ended = "" if code is None else f" (exit code {code})"
        return "\n".join([f"its worker {what}{ended}; the last lines of its stderr:", *lines])
