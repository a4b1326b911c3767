"""Asking on the chat page, in a real Chromium against the running application with the real small models."""

from __future__ import annotations

import re
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.app.page.browsing import (
    LAMBDA,
    SLOW_MS,
    answer,
    answered,
    application,
    ask,
    newcomer,
    tab,
    wait_for_answers,
)

ENDLESS = ("--max-new-tokens", "2000", "--drafter", "plain")


def test_a_newcomer_sees_what_to_do_and_one_click_asks_an_example(page: Page) -> None:
    welcome = page.locator("#qw-log .qw-welcome")
    expect(welcome).to_contain_text("You are asking Python's language reference")
    expect(welcome).to_contain_text("in colour")
    page.get_by_role("button", name=LAMBDA).click()
    wait_for_answers(page, 1)
    expect(page.locator("#qw-log .qw-question")).to_contain_text(LAMBDA)


def test_spans_are_marked_and_a_click_shows_their_place_in_the_document(page: Page) -> None:
    answered(page, LAMBDA)
    expect(page.locator("#qw-panel .qw-passage")).to_have_count(3)
    span = page.locator("#qw-log mark.qw-span").first
    rank = span.get_attribute("data-rank")
    copied = " ".join(span.inner_text().split())
    marked = page.locator(f"#qw-panel .qw-passage:has(header b:text-is('{rank}')) mark").all_inner_texts()
    assert any(copied in " ".join(text.split()) for text in marked)
    span.click()
    here = page.locator("#qw-place mark.qw-here")
    expect(here).to_be_in_viewport()
    assert " ".join(here.inner_text().split()) == copied
    assert len(page.locator("#qw-place .qw-text").inner_text()) > 600  # more than a passage
    expect(page.locator("#qw-place .qw-path li").first).to_be_visible()
    figures = page.locator("#qw-log .qw-figures").inner_text()
    assert re.search(r"tokens/s · accept length [\d.]+ .* stands in the passages · first token after", figures)


def test_a_follow_up_is_answered_in_the_same_conversation_and_a_new_chat_is_empty(page: Page) -> None:
    answered(page, "What is a generator?", "How does it end?")
    shown = page.locator("#qw-panel section").first.inner_text().lower()
    assert "generator" in shown, "the follow-up was not understood in context"
    page.click("#qw-new")
    expect(page.locator("#qw-log .qw-turn")).to_have_count(0)
    expect(page.locator("#qw-panel .qw-passage")).to_have_count(0)


def test_asking_again_replaces_the_last_answer(page: Page) -> None:
    answered(page, LAMBDA)
    first = answer(page).inner_text()
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator("#qw-stop")).to_be_visible()
    wait_for_answers(page, 1)
    assert answer(page).inner_text() == first  # greedy: the same words


def test_an_edited_question_cuts_the_conversation_there(page: Page) -> None:
    answered(page, "What is a generator?", "How does it end?")
    page.get_by_role("button", name="Edit this question and ask it again").first.click()
    expect(page.locator("#qw-question textarea")).to_have_value("What is a generator?")
    expect(page.locator("#qw-edit")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#qw-edit")).to_be_hidden()
    expect(page.locator("#qw-log .qw-turn")).to_have_count(2)
    page.get_by_role("button", name="Edit this question and ask it again").first.click()
    expect(page.locator("#qw-edit")).to_be_visible()
    answered_before = page.locator("#qw-log .qw-question .qw-text").first
    ask(page, LAMBDA)
    wait_for_answers(page, 1)
    expect(answered_before).to_have_text(LAMBDA)


def test_an_answer_is_copied_as_text_and_with_its_sources(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answered(page, LAMBDA)
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert " ".join(copied.split()) == " ".join(answer(page).inner_text().split())
    page.get_by_role("button", name="Copy with sources").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(2)
    markdown = page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"\[\d\]", markdown)
    assert re.search(r"^\[\d\] .*: “.*”$", markdown, re.MULTILINE)


def test_enter_sends_shift_enter_is_a_new_line_and_empty_questions_are_not_sent(page: Page) -> None:
    box = page.locator("#qw-question textarea")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    box.press("Enter")
    box.type("What is")
    box.press("Shift+Enter")
    box.type("a lambda?")
    expect(box).to_have_value("What is\na lambda?")
    assert not sent
    box.press("Enter")
    wait_for_answers(page, 1)
    expect(box).to_have_value("")


def test_what_is_chosen_is_used_and_kept(page: Page) -> None:
    tab(page, "Settings")
    page.click("#qw-drafter input")
    page.get_by_role("option", name="plain: one word at a time").click()
    page.locator("#qw-top-k input[type=number]").fill("1")
    page.locator("#qw-top-k input[type=number]").press("Tab")
    time.sleep(1)  # what is typed is kept a moment later
    answered(page, LAMBDA)
    expect(page.locator("#qw-log .qw-figures")).to_contain_text("accept length 1.00 (plain)")
    expect(page.locator("#qw-panel .qw-passage")).to_have_count(1)
    page.reload()
    tab(page, "Settings")
    expect(page.locator("#qw-drafter input")).to_have_value("plain: one word at a time")
    expect(page.locator("#qw-top-k input[type=number]")).to_have_value("1")
    page.click("#qw-reset")
    expect(page.locator("#qw-drafter input")).to_have_value("blend: the best for most")


def test_an_index_that_is_gone_is_said_in_words(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with application(home, QUOTEWRIGHT_MAX_NEW_TOKENS="10") as address:
        page = newcomer(browser, address)
        (home / "data" / "indexes" / "python-docs").unlink()
        ask(page, LAMBDA)
        expect(page.locator("#qw-log .qw-error")).to_contain_text("python app.py index", timeout=SLOW_MS)
        expect(page.locator("#qw-send")).to_be_visible()
        page.context.close()


def test_escape_stops_the_answer_frees_the_model_and_what_was_written_stays(browser: Browser, tmp_path: Path) -> None:
    with application(tmp_path / "home", *ENDLESS, QUOTEWRIGHT_STOP_REPEATS="false") as address:
        page = newcomer(browser, address)
        ask(page, LAMBDA)
        live = page.locator("#qw-live mark.qw-span").first
        expect(live).to_be_visible(timeout=SLOW_MS)  # spans are marked while the answer is written
        page.keyboard.press("Escape")
        expect(page.locator("#qw-log .qw-note")).to_contain_text("Stopped.", timeout=10_000)
        expect(page.locator("#qw-send")).to_be_visible()
        text = answer(page).inner_text()
        time.sleep(1)
        assert answer(page).inner_text() == text
        ask(page, "What is a generator?")
        expect(page.locator("#qw-live .qw-figures")).to_be_visible(timeout=SLOW_MS)
        page.keyboard.press("Alt+n")  # a new chat stops it too, and shows nothing more of it
        expect(page.locator("#qw-log .qw-welcome")).to_be_visible()
        time.sleep(1)
        expect(page.locator("#qw-live")).to_have_text("")
        page.click("#qw-chats .qw-chat")
        expect(page.locator("#qw-log .qw-turn")).to_have_count(2)
        expect(page.locator("#qw-log .qw-turn").last).to_contain_text("Stopped.")
        page.context.close()


def test_the_page_says_so_when_the_documents_say_nothing(page: Page) -> None:
    answered(page, "Which football club won the league in Brazil in 1987?")
    expect(page.locator("#qw-log .qw-nothing-found")).to_have_text("The documents do not say.")
    expect(page.locator("#qw-log mark.qw-span")).to_have_count(0)
    expect(page.locator("#qw-log .qw-note")).to_be_visible()
