"""How much memory this process takes, as the system counts it."""

from __future__ import annotations

import mmap


def resident_bytes() -> int:
    """Bytes of this process that are in memory. Raises OSError where the system has no /proc."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE
