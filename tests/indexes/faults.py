"""Runs one change of an index in a process of its own, with strace failing or killing it at a chosen system call.

``python -m tests.indexes.faults`` is a server that has everything imported and forks for each line of JSON that it
reads, so that hundreds of runs take seconds. `Faults` is its client.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from indexes.errors import IndexStoreError
from indexes.files import remove_index
from indexes.maintenance import compact, merge_due
from indexes.store import change_index, open_index, write_index
from tests.indexes.small import SETTINGS, one_chunk
from tests.strace import MISSING

CALLS = (
    "openat", "write", "pwrite64", "writev", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir",
    "mkdirat", "rmdir", "link", "symlink", "fsync", "fdatasync", "ftruncate", "fallocate", "flock",
)  # fmt: skip


def build(folder: Path) -> None:
    """Two documents, whatever there was."""
    write_index(folder, SETTINGS, [one_chunk("x", "one two"), one_chunk("y", "text two")])


def append(folder: Path, name: str = "new") -> None:
    """One more document, and the merge that it may make due."""
    change_index(open_index(folder, search=False), SETTINGS, [one_chunk(name, f"number {name}")])
    merge_due(folder)


def delete(folder: Path) -> None:
    """One document less."""
    change_index(open_index(folder, search=False), SETTINGS, deleted=["b"])
    merge_due(folder)


def append_many(folder: Path, worker: int, count: int) -> None:
    """Append documents, waiting for other writers as long as it takes."""
    for number in range(count):
        while True:
            try:
                append(folder, f"{worker}-{number}")
                break
            except IndexStoreError as error:
                if "being written" not in str(error) and "changed by somebody else" not in str(error):
                    raise


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "build": build, "append": append, "delete": delete, "compact": compact, "remove": remove_index,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `killed`, or with what it said; `calls` are those that it made, if they were asked for."""

    killed: bool
    said: str
    calls: tuple[tuple[str, int, str], ...] = ()


class Faults:
    """A server to be used in a `with` statement."""

    def __enter__(self) -> Faults:
        if shutil.which("strace") is None:
            raise AssertionError(MISSING)
        command = [sys.executable, "-m", "tests.indexes.faults"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdout is not None
        self._send(**request)
        return json.loads(self._process.stdout.readline())

    def _send(self, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def run(self, operation: str, folder: Path, inject: str = "") -> Outcome:
        """Run an operation with what strace is to inject; without, tell the calls."""
        log = folder.parent / "calls"
        found = self._ask(operation=operation, folder=str(folder), inject=inject, log=str(log))
        calls = () if inject else _calls(log.read_text())
        return Outcome(found["killed"], found["said"], calls)

    def append_in_many_processes(self, folder: Path, processes: int, count: int) -> None:
        """Start processes that append so many documents each; `wait` for them."""
        self._send(processes=processes, count=count, folder=str(folder))

    def wait(self) -> list[str]:
        """What the processes said."""
        assert self._process.stdout is not None
        return list(json.loads(self._process.stdout.readline()))


def _calls(log: str) -> tuple[tuple[str, int, str], ...]:
    """Each call that changes something, with its number among those of its name, and its line."""
    counted: dict[str, int] = {}
    found = []
    for line in log.splitlines():
        match = re.match(r"(?:\d+ +)?(\w+)\(", line)
        if match is not None:
            counted[match[1]] = number = counted.get(match[1], 0) + 1
            if match[1] != "openat" or "O_CREAT" in line:
                found.append((match[1], number, line))
    return tuple(found)


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(request["folder"])
        if "processes" in request:
            calls = [partial(append_many, folder, worker, request["count"]) for worker in range(request["processes"])]
            children = [_fork(call) for call in calls]
            answer: Any = [_ended(*child)[1] for child in children]
        else:
            answer = _traced(OPERATIONS[request["operation"]], folder, request["inject"], request["log"])
        print(json.dumps(answer), flush=True)


def _traced(operation: Callable[[Path], Any], folder: Path, inject: str, log: str) -> dict[str, Any]:
    pid, ours = _fork(lambda: operation(folder), traced=True)
    what = ["-e", f"trace={','.join(CALLS)}", "-o", log]
    command = ["strace", "-qq", *what, *(["-e", f"inject={inject}"] if inject else []), "-p", str(pid)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as tracer:
        while "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text() and tracer.poll() is None:
            time.sleep(0.001)
        ours.send(b"go")  # after it is certain that it is traced
        killed, said = _ended(pid, ours)
    return {"killed": killed, "said": said}


def _fork(call: Callable[[], Any], traced: bool = False) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()  # what is sent through it is no `write`
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    ours.close()
    try:
        if traced:
            theirs.recv(2)
        call()
        said = "done"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    theirs.send(said.encode()[:4000])
    os._exit(0)


def _ended(pid: int, ours: socket.socket) -> tuple[bool, str]:
    with ours:
        said = ours.recv(4000).decode()
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status), said


if __name__ == "__main__":
    _serve()
