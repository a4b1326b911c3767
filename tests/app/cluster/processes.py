"""What Linux tells of a process and of all that it started: where they listen, and their command lines."""

from __future__ import annotations

import os
from pathlib import Path

LISTENING = "0A"


def descendants(pid: int) -> list[int]:
    """A process and those that it started, and those that these started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def command_line(pid: int) -> str:
    """With which command it was started."""
    return _read(pid, "cmdline").replace("\0", " ")


def environment(pid: int) -> dict[str, str]:
    """With which environment it was started."""
    return dict(pair.split("=", 1) for pair in _read(pid, "environ").split("\0") if "=" in pair)


def listening(pids: list[int]) -> set[str]:
    """The addresses, as the kernel writes them, at which the processes listen for connections."""
    sockets = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(handle))
            except OSError:
                continue  # closed meanwhile
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == LISTENING and f"socket:[{parts[9]}]" in sockets:
                found.add(parts[1].partition(":")[0])
    return found


def alive(pids: list[int]) -> list[int]:
    """Those that have not ended."""
    return [pid for pid in pids if _read(pid, "stat") and ") Z " not in _read(pid, "stat")]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
