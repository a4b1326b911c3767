"""The running application, and what people do on its page in a real Chromium."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect
from reportlab.pdfgen import canvas

from app.setup.settings import paths

ROOT = Path(__file__).parents[3]
SLOW_MS = 90_000
LAMBDA = "What is a lambda expression?"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def application(home: Path, *flags: str, end: str = "SIGTERM", **settings: str) -> Iterator[str]:
    """The running application over the user's models and built-in index, with its own data; yields its address."""
    mine = paths()
    (home / "data" / "indexes").mkdir(parents=True, exist_ok=True)
    (home / "cache").mkdir(exist_ok=True)
    for here, there in (
        (home / "cache" / "models", mine.models),
        (home / "cache" / "verify-costs", mine.verify_costs),
        (home / "data" / "indexes" / "python-docs", mine.indexes / "python-docs"),
    ):
        if not here.is_symlink():
            here.symlink_to(there)
    port = free_port()
    environment = {**os.environ, "QUOTEWRIGHT_HOME": str(home), **settings}
    command = [sys.executable, "app.py", "chat", "--port", str(port), *flags]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said: list[str] = []
        for line in iter(process.stderr.readline, ""):
            said.append(line)
            if "Quotewright is on" in line:
                break
        else:
            raise AssertionError(f"the application did not start: {''.join(said)}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.Signals[end])
        process.wait(30)


def arrive(page: Page, address: str) -> Page:
    page.goto(address)
    return settled(page)


def settled(page: Page) -> Page:
    """The page, when it can be used."""
    expect(page.locator("#qw-question textarea")).to_be_visible(timeout=SLOW_MS)
    expect(page.locator("#qw-question textarea")).to_be_editable(timeout=SLOW_MS)
    expect(page.locator("#qw-chats")).not_to_contain_text("Loading", timeout=SLOW_MS)  # the server knows who is there
    return page


def newcomer(browser: Browser, address: str) -> Page:
    """Another person's page."""
    return arrive(browser.new_context().new_page(), address)


def ask(page: Page, question: str) -> None:
    page.fill("#qw-question textarea", question)
    page.click("#qw-send")


def wait_for_answers(page: Page, count: int) -> None:
    expect(page.locator("#qw-log .qw-turn")).to_have_count(count, timeout=SLOW_MS)
    expect(page.locator("#qw-send")).to_be_visible(timeout=SLOW_MS)


def answered(page: Page, *questions: str) -> None:
    """Ask one after the other, and wait for each answer."""
    before = page.locator("#qw-log .qw-turn").count()
    for count, question in enumerate(questions, start=before + 1):
        ask(page, question)
        wait_for_answers(page, count)


def answer(page: Page) -> Locator:
    """The last answer's text."""
    return page.locator("#qw-log .qw-answer").last


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def upload(page: Page, *files: Path) -> None:
    tab(page, "Documents")
    with page.expect_file_chooser() as chooser:
        page.click("#qw-upload")
    chooser.value.set_files([str(file) for file in files])


def uploaded(page: Page, *files: Path) -> None:
    """Upload files and wait until the report names how many documents there are."""
    upload(page, *files)
    expect(page.locator("#qw-report")).to_contain_text(re.compile("documents"), timeout=SLOW_MS)


def choose(page: Page, source: str) -> None:
    """Ask other documents."""
    page.click("#qw-index input")
    page.get_by_role("option", name=source, exact=True).click()


def write_pdf(path: Path, pages: Sequence[str]) -> Path:
    pdf = canvas.Canvas(str(path))
    for text in pages:
        pdf.drawString(72, 700, text)
        pdf.showPage()
    pdf.save()
    return path
