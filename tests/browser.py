"""Finds a Chromium for the tests of the chat page, and with ``python -m tests.browser`` gets one if there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """The path of a Chromium: $CHROMIUM, one on the PATH, or playwright's own."""
    if named := os.environ.get("CHROMIUM"):
        return named
    if found := next(filter(None, map(shutil.which, NAMES)), None):
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def _run(*command: str) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, check=False, stdin=subprocess.DEVNULL)


def main() -> None:
    """Make sure that there is a Chromium; exits with 1 and says what to do if none can be had."""
    if find_chromium():
        return
    print("The tests of the chat page need a Chromium; getting one.", flush=True)
    _run(sys.executable, "-m", "playwright", "install", "chromium")
    if not find_chromium() and shutil.which("apt-get") and os.geteuid() == 0:
        _run("apt-get", "update", "-q")
        _run("apt-get", "install", "-y", "-q", "chromium")
    if not find_chromium():
        sys.exit(
            "No Chromium could be had. Install one (Debian: apt-get install chromium) or set CHROMIUM to its path."
        )


if __name__ == "__main__":
    main()
