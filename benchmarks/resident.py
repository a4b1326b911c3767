"""How much memory this process takes, and how much it has read, as the system counts it."""

from __future__ import annotations

import mmap


def resident_bytes() -> int:
    """Bytes of this process that are in memory. Raises OSError where the system has no /proc."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


def peak_bytes() -> int:
    """The most memory that this process ever had. Raises OSError where the system has no /proc."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def read_bytes() -> int:
    """How much this process has asked the system to read. Raises OSError where the system has no /proc."""
    with open("/proc/self/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("rchar:"))
