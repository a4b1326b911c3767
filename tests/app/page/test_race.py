"""The race view in a real Chromium."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.app.page.browsing import LAMBDA, SLOW_MS, tab


def _start(page: Page, question: str = LAMBDA) -> None:
    tab(page, "Race")
    page.locator("#qw-race-question").get_by_role("textbox").fill(question)
    page.click("#qw-race-start")


def test_both_lanes_write_the_same_text_and_the_chart_has_a_bar_for_each_step(page: Page) -> None:
    _start(page)
    lanes = page.locator("#qw-race .qw-lane")
    expect(lanes.locator(".qw-answer").first).to_be_visible(timeout=SLOW_MS)
    expect(page.locator("#qw-race .qw-verdict")).to_contain_text("The same text, to the letter", timeout=SLOW_MS)
    plain, drafted = lanes.locator(".qw-answer").all_inner_texts()
    assert plain == drafted
    expect(lanes.nth(0)).to_contain_text("accept length 1.00 (plain)")
    expect(lanes.nth(1)).to_contain_text("(blend)")
    bars = page.locator("#qw-race .qw-chart rect")
    assert bars.count() > 3
    expect(page.locator("#qw-race .qw-legend")).to_contain_text("the model itself")
    expect(page.locator("#qw-chats")).to_contain_text("Your conversations will be listed here")  # nothing is kept


def test_a_race_is_stopped(page: Page) -> None:
    _start(page)
    expect(page.locator("#qw-race-stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#qw-race-start")).to_be_visible(timeout=SLOW_MS)


def test_a_race_without_a_question_says_so(page: Page) -> None:
    tab(page, "Race")
    page.click("#qw-race-start")
    expect(page.locator("#qw-race .qw-error")).to_contain_text("the question is empty")


def test_a_race_for_what_the_documents_do_not_say_ends_at_once(page: Page) -> None:
    _start(page, "Which football club won the league in Brazil in 1987?")
    expect(page.locator("#qw-race .qw-nothing-found")).to_have_count(2, timeout=SLOW_MS)
    expect(page.locator("#qw-race .qw-verdict")).to_have_count(0)
