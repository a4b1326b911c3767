"""Finds strace for the tests that fail a system call, and with ``python -m tests.strace`` gets it if there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

MISSING = "There is no strace, which the tests of killed writers need. Install it (Debian: apt-get install strace)."


def main() -> None:
    """Make sure that there is a strace; exits with 1 and says what to do if none can be had."""
    if shutil.which("strace") is None and shutil.which("apt-get") and os.geteuid() == 0:
        for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-y", "-q", "strace"]):
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
    if shutil.which("strace") is None:
        sys.exit(MISSING)


if __name__ == "__main__":
    main()
