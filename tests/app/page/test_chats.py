"""Conversations on the page: kept, listed, renamed, exported, deleted; in a real Chromium."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.app.page.browsing import LAMBDA, SLOW_MS, answer, answered, application, arrive, ask


def test_a_conversation_is_listed_opened_renamed_exported_and_deleted(page: Page) -> None:
    answered(page, LAMBDA)
    text = answer(page).inner_text()
    page.click("#qw-new")
    expect(page.locator("#qw-log .qw-welcome")).to_be_visible()
    answered(page, "What is a generator?")
    chats = page.locator("#qw-chats li")
    expect(chats).to_have_count(2)
    page.get_by_role("button", name=LAMBDA, exact=True).click()
    expect(answer(page)).to_have_text(text)
    expect(page.locator("#qw-panel .qw-passage")).to_have_count(3)
    page.get_by_role("button", name=f"Rename conversation {LAMBDA}").click()
    page.get_by_role("textbox", name="New title").fill("Small functions")
    page.keyboard.press("Enter")
    expect(page.locator("#qw-chats [aria-current] .qw-chat")).to_have_text("Small functions")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export conversation Small functions as Markdown").click()
    assert saved.value.suggested_filename == "Small functions.md"
    exported = Path(saved.value.path()).read_text("utf-8")
    assert exported.startswith(f"# Small functions\n\n## {LAMBDA}\n\n")
    assert "\n[1] " in exported or "\n[2] " in exported or "\n[3] " in exported
    page.get_by_role("button", name="Delete conversation Small functions").click()
    expect(chats).to_have_count(2)  # not before it is confirmed
    page.get_by_text("Really delete?").click()
    expect(chats).to_have_count(1)
    expect(page.locator("#qw-log .qw-turn")).to_have_count(0)


def test_a_reloaded_page_still_has_its_conversations_and_their_places(page: Page) -> None:
    answered(page, LAMBDA)
    page.reload()
    page.get_by_role("button", name=LAMBDA, exact=True).first.click()
    page.locator("#qw-log mark.qw-span").first.click()
    expect(page.locator("#qw-place mark.qw-here")).to_be_visible()


def test_conversations_survive_a_kill_in_the_middle_of_an_answer(browser: Browser, tmp_path: Path) -> None:
    home, context = tmp_path / "home", browser.new_context()
    page = context.new_page()
    settings = {"QUOTEWRIGHT_MAX_NEW_TOKENS": "2000", "QUOTEWRIGHT_STOP_REPEATS": "false"}
    with application(home, end="SIGKILL", QUOTEWRIGHT_MAX_NEW_TOKENS="20") as address:
        arrive(page, address)
        port = address.rpartition(":")[2]
        answered(page, LAMBDA)
        text = answer(page).inner_text()
    with application(home, "--port", port, end="SIGKILL", **settings):
        arrive(page, address)
        page.click("#qw-chats .qw-chat")
        expect(answer(page)).to_have_text(text)
        ask(page, "What is a generator?")
        expect(page.locator("#qw-live .qw-figures")).to_be_visible(timeout=SLOW_MS)
    with application(home, "--port", port, QUOTEWRIGHT_MAX_NEW_TOKENS="20"):
        arrive(page, address)
        page.click("#qw-chats .qw-chat")
        expect(page.locator("#qw-log .qw-turn").first).to_contain_text(text[:40])
        expect(page.locator("#qw-log .qw-turn").last).to_contain_text("was not answered")
        page.get_by_role("button", name="Ask again").click()
        expect(page.locator("#qw-log .qw-figures")).to_have_count(2, timeout=SLOW_MS)
    context.close()
