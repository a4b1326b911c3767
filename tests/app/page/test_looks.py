"""How the page looks and is used: contrast, dark mode, a phone, the keyboard; and that it asks nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import app.page
from tests.app.page.browsing import (
    LAMBDA,
    SLOW_MS,
    answered,
    application,
    arrive,
    tab,
    uploaded,
    write_pdf,
)

CSS = (Path(app.page.__file__).parent / "page.css").read_text("utf-8")
VIEWS = ("Passages", "Source", "Documents", "Settings", "Race", "Chat")
LEAST_CONTRAST = 4.5  # WCAG AA for text


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _variables(selector: str) -> dict[str, str]:
    block = re.search(rf"^{re.escape(selector)} \{{(.*?)\}}", CSS, re.DOTALL | re.MULTILINE)
    assert block is not None
    return dict(re.findall(r"--qw-(\w+): (#[0-9a-f]{6})", block[1]))


def test_contrast_is_reckoned_as_it_is_defined() -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)
    assert _contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("mode", "ground"), [(":root", "#fafafa"), (".dark", "#27272a")])
def test_coloured_words_and_notes_can_be_read_in_light_and_in_dark(mode: str, ground: str) -> None:
    colours = _variables(mode)
    for number in range(6):
        assert _contrast(colours["ink"], colours[f"c{number}"]) >= LEAST_CONTRAST, f"{mode}: c{number}"
        assert _contrast(colours[f"b{number}"], ground) >= 3, f"{mode}: b{number}"  # WCAG AA for graphics
    for text in ("note", "error", "quiet"):
        assert _contrast(colours[text], ground) >= LEAST_CONTRAST, f"{mode}: {text}"


@pytest.fixture(params=["light", "dark"])
def themed(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param)
    yield arrive(context.new_page(), address)
    context.close()


def _computed(page: Page, selector: str, what: str) -> str:
    """A computed colour as #rrggbb."""
    value = page.locator(selector).first.evaluate("(element, what) => getComputedStyle(element)[what]", what)
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", value)[:3])


def test_the_page_is_dark_when_the_browser_is_and_its_spans_can_be_read(themed: Page) -> None:
    dark = themed.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    answered(themed, LAMBDA)
    assert (_luminance(_computed(themed, "body", "backgroundColor")) < 0.1) is dark
    span = "#qw-log mark.qw-span"
    assert _contrast(_computed(themed, span, "color"), _computed(themed, span, "backgroundColor")) >= LEAST_CONTRAST
    body = _computed(themed, "#qw-log .qw-answer", "color")
    assert _contrast(body, _computed(themed, "body", "backgroundColor")) >= LEAST_CONTRAST


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    yield arrive(context.new_page(), address)
    context.close()


def _fits(page: Page) -> bool:
    return bool(page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) <= 390"))


def test_on_a_phone_the_sides_are_drawers_and_nothing_scrolls_sideways(phone: Page) -> None:
    left, right = phone.locator("#qw-left"), phone.locator("#qw-right")
    expect(left).to_be_hidden()
    expect(right).to_be_hidden()
    answered(phone, LAMBDA)
    assert _fits(phone)
    assert phone.locator("#qw-chat").evaluate("element => element.scrollWidth <= element.clientWidth")
    phone.locator("#qw-log mark.qw-span").first.tap()
    expect(phone.locator("#qw-place mark.qw-here")).to_be_in_viewport()
    for name in VIEWS[:4]:
        tab(phone, name)
        assert _fits(phone), name
        assert right.evaluate("element => element.scrollWidth <= element.clientWidth"), name
    phone.get_by_role("button", name="Show or hide conversations").tap()
    expect(left).to_be_visible()
    expect(right).to_be_hidden()
    phone.get_by_role("button", name=LAMBDA, exact=True).tap()
    expect(left).to_be_hidden()
    tab(phone, "Race")
    assert _fits(phone)


def test_a_span_is_reached_and_opened_by_keys_alone(page: Page) -> None:
    answered(page, LAMBDA)
    span = page.locator("#qw-log mark.qw-span").first
    assert span.get_attribute("role") == "button"
    page.locator("#qw-log .qw-question button").focus()
    page.keyboard.press("Tab")
    expect(span).to_be_focused()
    assert span.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#qw-place mark.qw-here")).to_be_focused()


def test_alt_n_begins_a_new_chat_with_the_cursor_in_the_box(page: Page) -> None:
    answered(page, LAMBDA)
    page.keyboard.press("Alt+n")
    expect(page.locator("#qw-log .qw-welcome")).to_be_visible()
    expect(page.locator("#qw-question textarea")).to_be_focused()


def test_everything_that_can_be_used_has_a_name(page: Page) -> None:
    answered(page, LAMBDA)
    for name in VIEWS:
        tab(page, name)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, input, textarea, select, a, [role=button]")]
            .filter((element) => element.offsetParent !== null && !element.innerText?.trim() && !element.title
                && !element.getAttribute("aria-label") && !element.getAttribute("aria-labelledby")
                && !(element.labels?.length && [...element.labels].some((label) => label.innerText.trim())))
            .map((element) => element.outerHTML.slice(0, 200))"""
        )
        assert nameless == [], name


def test_no_view_asks_anybody_but_this_server(browser: Browser, tmp_path: Path) -> None:
    with application(tmp_path / "home", QUOTEWRIGHT_MAX_NEW_TOKENS="20") as address:
        context = browser.new_context()
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        context.on("page", lambda opened: opened.on("websocket", lambda socket: asked.append(socket.url)))
        page = arrive(context.new_page(), address)
        uploaded(page, write_pdf(tmp_path / "a.pdf", ["The ferry leaves every morning from the north pier."]))
        answered(page, "When does the ferry leave?")
        page.locator("#qw-log mark.qw-span").first.click()
        expect(page.locator("#qw-place mark.qw-here")).to_be_visible()
        for name in VIEWS:
            tab(page, name)
        tab(page, "Race")
        page.locator("#qw-race-question").get_by_role("textbox").fill("When does the ferry leave?")
        page.keyboard.press("Enter")
        expect(page.locator("#qw-race .qw-verdict")).to_be_visible(timeout=SLOW_MS)
        page.wait_for_timeout(1000)
        elsewhere = [url for url in asked if not url.startswith((address, "blob:", "data:"))]
        assert len(asked) > 20
        assert elsewhere == []
        context.close()
