"""One running application and one browser for all tests of the page; each test is a person of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.app.page.browsing import application, arrive
from tests.browser import ARGUMENTS, find_chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    assert chromium, "no Chromium: run `python -m tests.browser`, which says what to do"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with application(tmp_path_factory.mktemp("home"), QUOTEWRIGHT_MAX_NEW_TOKENS="40") as running:
        yield running


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context()
    yield arrive(context.new_page(), address)
    context.close()
