"""Login and the isolation of persons, in a real Chromium: files, chats, caches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.page.conversations import Conversations
from app.page.users import Users
from tests.app.page.browsing import ROOT, SLOW_MS, answered, application, newcomer, settled, tab, uploaded

PASSWORDS = {"anna": "correct horse", "ben": "battery staple"}
PLAN = "The secret plan is to paint the lighthouse in bright purple before Christmas."
QUESTION = "What is the secret plan?"


def _login(page: Page, address: str, name: str) -> Page:
    page.goto(address)
    page.get_by_label("username").fill(name)
    page.get_by_label("password").fill(PASSWORDS[name])
    page.get_by_role("button", name="Login").click()
    return settled(page)  # it loads itself again


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("login")
    users = Users(home / "data" / "users")
    for name, password in PASSWORDS.items():
        users.add(name, password)
    return home


@pytest.fixture(scope="module")
def guarded(home: Path) -> Iterator[str]:
    with application(home, "--auth", QUOTEWRIGHT_MAX_NEW_TOKENS="30") as address:
        yield address


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    file = tmp_path / "secret-plans.txt"
    file.write_text(PLAN)
    return file


def _sees_nothing(page: Page) -> None:
    """None of the plan shows in anything that this person can open, but for their own questions."""
    page.click("#qw-index input")
    expect(page.get_by_role("option", name="python-docs")).to_be_visible()
    assert page.get_by_role("option", name="My documents").count() == 0
    page.keyboard.press("Escape")
    tab(page, "Documents")
    expect(page.locator("#qw-documents")).to_contain_text("Nothing uploaded yet")
    expect(page.locator("#qw-chats")).to_contain_text("Your conversations will be listed here")
    assert "secret-plans" not in page.content()
    assert "bright purple" not in page.content()


def test_two_browsers_without_login_see_nothing_of_each_other(
    page: Page, browser: Browser, address: str, plans: Path
) -> None:
    uploaded(page, plans)
    answered(page, QUESTION)
    tab(page, "Passages")
    expect(page.locator("#qw-panel")).to_contain_text("bright purple")
    other = newcomer(browser, address)
    _sees_nothing(other)
    other.context.close()


def test_two_users_see_nothing_of_each_other_even_in_one_browser(browser: Browser, guarded: str, plans: Path) -> None:
    context = browser.new_context()
    page = _login(context.new_page(), guarded, "anna")
    uploaded(page, plans)
    answered(page, QUESTION)
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_role("button", name="Login")).to_be_visible()
    _sees_nothing(_login(page, guarded, "ben"))  # the browser, and what it keeps, is the same
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_role("button", name="Login")).to_be_visible()
    again = _login(page, guarded, "anna")
    expect(again.locator("#qw-chats .qw-chat")).to_have_text(QUESTION)
    context.close()


def test_a_user_is_the_same_person_in_another_browser(browser: Browser, guarded: str) -> None:
    first = _login(browser.new_context().new_page(), guarded, "ben")
    answered(first, "What is a generator?")
    second = _login(browser.new_context().new_page(), guarded, "ben")
    expect(second.locator("#qw-chats .qw-chat").first).to_have_text("What is a generator?")
    first.context.close()
    second.context.close()


def test_a_forged_turn_of_another_user_shows_nothing(browser: Browser, guarded: str, plans: Path) -> None:
    anna = _login(browser.new_context().new_page(), guarded, "anna")
    uploaded(anna, plans)
    answered(anna, QUESTION)
    span = anna.locator("#qw-log mark.qw-span").last
    turn = span.get_attribute("data-turn")
    chat = anna.locator("#qw-chats [aria-current] .qw-chat").get_attribute("data-chat")
    ben = _login(browser.new_context().new_page(), guarded, "ben")
    answered(ben, "What is a lambda expression?")
    ben.locator("#qw-log mark.qw-span").first.evaluate("(span, turn) => span.dataset.turn = turn", turn)
    ben.locator("#qw-log mark.qw-span").first.click()
    expect(ben.locator("#qw-notice")).to_contain_text("not there any more")
    ben.locator("#qw-chats .qw-chat").first.evaluate("(button, chat) => button.dataset.chat = chat", chat)
    ben.locator("#qw-chats .qw-chat").first.click()
    expect(ben.locator("#qw-notice")).to_contain_text("this conversation is not there any more")
    assert "bright purple" not in ben.content()
    anna.context.close()
    ben.context.close()


def _copied_from(home: Path, name: str) -> list[set[str]]:
    """Where the drafts of each of a user's answers were copied from, the latest conversation first."""
    person, kept = Users(home / "data" / "users").token(name), Conversations(home / "data" / "conversations.sqlite")
    turns = (turn for entry in kept.entries(person) for turn in kept.read(person, entry.id).turns)
    return [{source for one in turn.answer.passes for source in one.sources} for turn in turns if turn.answer]


def test_drafts_are_copied_from_ones_own_earlier_answers_and_from_nobody_elses(
    browser: Browser, guarded: str, home: Path
) -> None:
    question = "What does the yield expression do?"
    anna = _login(browser.new_context().new_page(), guarded, "anna")
    answered(anna, question)
    anna.click("#qw-new")
    expect(anna.locator("#qw-log .qw-welcome")).to_be_visible()
    answered(anna, question)
    assert "similar answer" in _copied_from(home, "anna")[0]
    ben = _login(browser.new_context().new_page(), guarded, "ben")
    answered(ben, question)
    assert "similar answer" not in _copied_from(home, "ben")[0]
    anna.context.close()
    ben.context.close()


def test_an_uploaded_file_cannot_be_fetched_from_the_server_by_anybody(
    browser: Browser, guarded: str, home: Path, plans: Path
) -> None:
    anna = _login(browser.new_context().new_page(), guarded, "anna")
    with anna.expect_response(lambda response: response.request.method == "POST" and "upload" in response.url) as sent:
        uploaded(anna, plans)
    (temporary,) = sent.value.json()
    kept = [str(file) for file in (home / "data" / "uploads").glob("*/uploads/secret-plans.txt")]
    assert kept
    ben = _login(browser.new_context().new_page(), guarded, "ben")
    for page in (anna, ben):
        for path in (temporary, *kept, str(home / "data" / "conversations.sqlite"), str(home / "data" / "users")):
            reply = page.request.get(f"{guarded}/gradio_api/file={path}")
            assert reply.status in (403, 404), f"{path}: {reply.status}"
            assert "bright purple" not in reply.text()
    stranger = browser.new_context()
    assert stranger.request.get(f"{guarded}/gradio_api/file={temporary}").status == 401
    for context in (anna.context, ben.context, stranger):
        context.close()


def test_a_wrong_password_does_not_open_the_page(browser: Browser, guarded: str) -> None:
    page = browser.new_context().new_page()
    page.goto(guarded)
    for name, password in (("anna", "wrong horse"), ("nobody", "correct horse")):
        page.get_by_label("username").fill(name)
        page.get_by_label("password").fill(password)
        page.get_by_role("button", name="Login").click()
        expect(page.get_by_text("Incorrect Credentials")).to_be_visible()
    assert page.locator("#qw-question").count() == 0
    assert page.request.get(f"{guarded}/config").status == 401
    page.context.close()


def test_a_removed_user_who_is_still_logged_in_can_do_nothing(browser: Browser, guarded: str, home: Path) -> None:
    users = Users(home / "data" / "users")
    users.add("anna", PASSWORDS["anna"])
    page = _login(browser.new_context().new_page(), guarded, "anna")
    users.remove("anna")
    page.fill("#qw-question textarea", "What is a generator?")
    page.click("#qw-send")
    expect(page.locator("#qw-notice")).to_contain_text("not among the users any more", timeout=SLOW_MS)
    users.add("anna", PASSWORDS["anna"])
    page.context.close()


def test_a_page_that_nobody_could_log_in_to_is_not_served(tmp_path: Path) -> None:
    environment = {"QUOTEWRIGHT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    check = (
        "from app.answering.engine import Engine; from app.setup.settings import Settings; "
        "from app.page.serving import page_arguments; page_arguments(Engine(Settings(auth=True)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert "nobody could log in: add a user with `python app.py users add NAME`" in ended.stderr
