"""The documents panel in a real Chromium: upload, errors per file, list, places, delete, index again."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.app.page.browsing import SLOW_MS, answered, tab, upload, uploaded, write_pdf

KEEPER = "The lighthouse keeper counted exactly 412 steps to the lamp room."
GUIDE = (
    "<h1>Harbour guide</h1><p>Welcome.</p><h2>Boats</h2>"
    "<p>The ferry to the island leaves every morning from the north pier.</p><h2>Food</h2><p>Soup.</p>"
)


def test_a_pdf_is_asked_and_a_span_shows_its_page(page: Page, tmp_path: Path) -> None:
    pdf = write_pdf(tmp_path / "lighthouse.pdf", ["A short history of the harbour and its fishing boats.", KEEPER])
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing")
    uploaded(page, pdf, broken)
    expect(page.locator("#qw-report li")).to_contain_text("broken.pdf: not a readable pdf file")
    expect(page.locator("#qw-documents .qw-docs").first).to_contain_text("lighthouse.pdf")
    expect(page.locator("#qw-index input")).to_have_value("My documents")
    answered(page, "How many steps did the lighthouse keeper count?")
    page.locator("#qw-log mark.qw-span").first.click()
    expect(page.locator("#qw-place .qw-page")).to_have_text("page 2")
    expect(page.locator("#qw-place .qw-text")).to_contain_text(KEEPER)
    expect(page.locator("#qw-place .qw-text")).not_to_contain_text("short history")
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Open the file at page 2").click()
    opened.value.wait_for_url("blob:**", wait_until="commit")
    assert opened.value.url.endswith("#page=2")


def test_a_span_of_an_html_file_shows_its_headings(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "guide.html"
    file.write_text(GUIDE)
    uploaded(page, file)
    answered(page, "When does the ferry to the island leave?")
    page.locator("#qw-log mark.qw-span").first.click()
    expect(page.locator("#qw-place .qw-path li")).to_have_text(["Harbour guide", "Boats"])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the file").click()
    assert Path(saved.value.path()).read_text() == GUIDE


def test_documents_are_indexed_again_and_deleted(page: Page, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.txt").write_text(f"The {name} text is about the lighthouse.")
    uploaded(page, tmp_path / "first.txt", tmp_path / "second.txt")
    mine = page.locator("#qw-documents > * .qw-docs").first.locator("li")
    expect(mine).to_have_count(2)
    page.click("#qw-reindex")
    expect(page.locator("#qw-report")).to_contain_text("2 documents, 2 passages; 2 new", timeout=SLOW_MS)
    page.get_by_role("button", name="Delete first.txt").click()
    page.get_by_text("Really delete?").click()
    expect(mine).to_have_count(1)
    expect(mine).to_contain_text("second.txt")
    page.get_by_role("button", name="Delete second.txt").click()
    page.get_by_text("Really delete?").click()
    expect(page.locator("#qw-documents")).to_contain_text("Nothing uploaded yet")
    expect(page.locator("#qw-index input")).to_have_value("python-docs")


def test_a_file_of_the_same_name_replaces_the_earlier_one_and_the_page_says_so(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("The lamp is red.")
    uploaded(page, file)
    file.write_text("The lamp is green.")
    upload(page, file)
    expect(page.locator("#qw-report")).to_contain_text("Replaced: notes.txt", timeout=SLOW_MS)


def test_when_no_file_can_be_read_each_reason_is_said(page: Page, tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty.txt", tmp_path / "noise.txt"
    empty.write_text("")
    binary.write_bytes(bytes(range(256)) * 10)
    upload(page, empty, binary)
    error = page.locator("#qw-report .qw-error")
    expect(error).to_contain_text("empty.txt: empty", timeout=SLOW_MS)
    expect(error).to_contain_text("noise.txt: binary")


def test_a_place_in_a_document_that_has_changed_shows_the_passage_as_it_was_read(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("The ferry to the island leaves every morning from the north pier.")
    uploaded(page, file)
    answered(page, "When does the ferry to the island leave?")
    file.write_text("Something else entirely is written in this file now, about trains and their stations.")
    upload(page, file)
    expect(page.locator("#qw-report")).to_contain_text("Replaced", timeout=SLOW_MS)
    page.locator("#qw-log mark.qw-span").first.click()
    expect(page.locator("#qw-place")).to_contain_text("The document has changed since")
    expect(page.locator("#qw-place")).to_contain_text("from the north pier")
    tab(page, "Passages")
