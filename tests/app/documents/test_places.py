from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.spans import Tracer
from app.documents.places import Place, citation, find_place, place_in
from indexes.errors import SettingError
from indexes.passage_store import PassageStore
from indexes.passages import Document, Heading
from retrieval.chunking import chunk_document
from retrieval.documents import read_document
from tests.indexes.small import passage_store
from tests.retrieval.files import pdf, word_with_styles

TEXT = "Intro.\n\nSetup\n\nGet it.\n\nWindows\n\nRun the installer.\n\nEnd\n\nBye."
HEADINGS = (Heading(1, "Setup", 8), Heading(2, "Windows", 24), Heading(1, "End", 53))
GUIDE = Document("docs/guide.md", "guide.md", TEXT, "0", (), HEADINGS)
PAGED = Document("r.pdf", "r.pdf", "one page\n\ntwo pages\n\n\n\nlast", "0", (0, 10, 21, 23))


def around(place: Place) -> tuple[str, str, str]:
    return place.before, place.marked, place.after


def place_of(document: Document, words: str, max_chars: int = 4000) -> Place:
    start = document.text.index(words)
    return place_in(document, start, start + len(words), max_chars)


def test_a_place_under_headings_shows_its_section() -> None:
    place = place_of(GUIDE, "the installer")
    assert around(place) == ("Windows\n\nRun ", "the installer", ".")
    assert (place.page, place.headings, place.start) == (None, ("Setup", "Windows"), 37)
    assert (place.cut_before, place.cut_after) == (False, False)


def test_a_place_before_the_first_heading_has_none() -> None:
    place = place_of(GUIDE, "Intro")
    assert (around(place), place.headings) == (("", "Intro", "."), ())


def test_a_heading_stands_under_itself() -> None:
    place = place_of(GUIDE, "Setup")
    assert (around(place), place.headings) == (("", "Setup", "\n\nGet it."), ("Setup",))


def test_a_place_across_sections_shows_them_all() -> None:
    place = place_of(GUIDE, "it.\n\nWindows\n\nRun")
    assert around(place) == ("Setup\n\nGet ", "it.\n\nWindows\n\nRun", " the installer.")


def test_a_place_in_a_pdf_shows_its_page() -> None:
    place = place_of(PAGED, "pages")
    assert (around(place), place.page) == (("two ", "pages", ""), 2)
    last = place_of(PAGED, "last")
    assert (around(last), last.page) == (("", "last", ""), 4)


def test_pages_count_more_than_headings() -> None:
    document = Document("r", "r", "one\n\nHead two", "0", (0,), (Heading(1, "Head", 5),))
    place = place_of(document, "two")
    assert (around(place), place.page, place.headings) == (("one\n\nHead ", "two", ""), 1, ("Head",))


def test_a_text_without_pages_and_headings_is_shown_whole() -> None:
    assert around(place_of(Document("t", "t", "  a b\n\nc ", "0"), "b")) == ("a ", "b", "\n\nc")


# Long texts

LONG = Document("l", "l", "\n\n".join(f"Paragraph {number:03} of the text." for number in range(100)), "0")


def test_a_long_text_is_cut_between_paragraphs() -> None:
    place = place_of(LONG, "050", 300)
    assert place.before.startswith("Paragraph 0")
    assert place.after.endswith("of the text.")
    assert (place.cut_before, place.cut_after) == (True, True)
    assert 200 < sum(map(len, around(place))) <= 300


def test_room_that_is_not_needed_on_one_side_goes_to_the_other() -> None:
    assert len(place_of(LONG, "000", 300).after) > 200
    assert len(place_of(LONG, "099", 300).before) > 200


def test_a_long_paragraph_is_cut_between_words() -> None:
    document = Document("l", "l", "some words " * 200 + "here " + "more words " * 200, "0")
    place = place_of(document, "here", 100)
    assert place.before.split()[0] in ("some", "words")
    assert place.after.split()[-1] in ("more", "words")
    assert sum(map(len, around(place))) > 80


def test_a_text_without_spaces_is_cut_anywhere() -> None:
    document = Document("l", "l", "日" * 500 + "本" + "日" * 500, "0")
    assert [len(part) for part in around(place_of(document, "本", 101))] == [50, 1, 50]


def test_what_is_marked_is_never_cut() -> None:
    place = place_in(LONG, 0, 1000, 100)
    assert (len(place.marked), place.before, place.after) == (1000, "", "")


@given(
    text=st.text(st.sampled_from("ab \n\t日"), min_size=1, max_size=200),
    edges=st.tuples(st.integers(0, 199), st.integers(1, 200)),
    bounds=st.lists(st.integers(0, 200), max_size=5),
    paged=st.booleans(),
    max_chars=st.integers(0, 100),
)
def test_a_place_is_a_run_of_its_text_and_no_longer_than_allowed(
    text: str, edges: tuple[int, int], bounds: list[int], paged: bool, max_chars: int
) -> None:
    start = min(edges[0], len(text) - 1)
    end = max(start + 1, min(edges[1], len(text)))
    inside = sorted({bound for bound in bounds if bound < len(text)})
    pages = (0, *(bound for bound in inside if bound)) if paged else ()
    headings = () if paged else tuple(Heading(1, text[bound], bound) for bound in inside)
    place = place_in(Document("a", "a", text, "0", pages, headings), start, end, max_chars)
    assert place.marked == text[start:end]
    assert text.startswith("".join(around(place)), start - len(place.before))
    assert sum(map(len, around(place))) <= max(max_chars, end - start)


# What cannot be


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 3), (5, 4), (0, len(TEXT) + 1), (10**9, 10**9 + 1)])
def test_characters_that_are_not_there_are_refused(start: int, end: int) -> None:
    with pytest.raises(SettingError, match=r"are not in 'docs/guide.md', which has 62"):
        place_in(GUIDE, start, end)


@pytest.fixture
def store(tmp_path: Path) -> PassageStore:
    return passage_store(tmp_path / "p", (GUIDE, chunk_document(GUIDE, 30)))


def test_a_document_that_is_not_there_is_refused(store: PassageStore) -> None:
    with pytest.raises(SettingError, match=r"there is no document '\.\./x'"):
        find_place(store, "../x", 0, 1)


# Citations


@pytest.mark.parametrize(
    ("page", "headings", "words"),
    [
        (None, (), "a.html"),
        (3, (), "a.html, page 3"),
        (None, ("Setup", "Windows"), "a.html › Setup › Windows"),
        (3, ("Setup",), "a.html, page 3 › Setup"),
    ],
)
def test_a_citation_names_page_and_headings(page: int | None, headings: tuple[str, ...], words: str) -> None:
    assert citation("a.html", page, headings) == words


def test_headings_are_shown_in_one_line_and_short() -> None:
    document = Document("a", "a", "x", "0", (), (Heading(1, "a\n  b", 0), Heading(2, "long " * 40, 0)))
    first, second = place_in(document, 0, 1).headings
    assert (first, len(second) <= 80, second.endswith("long…")) == ("a b", True, True)


# Spans of answers, in files of every kind

SENTENCE = "The keeper counted  exactly 412 steps to the lamp."
RST = f"Tower\n=====\n\nA *b*.\n\nLamp\n----\n\nBefore. {SENTENCE} After.\n"
MARKDOWN = f"# Tower\n\nA *b*.\n\n## Lamp\n\nBefore. {SENTENCE}\nAfter.\n"
HTML = f"<h1>Tower</h1>\n<p>A <b>b</b>.</p><h2>Lamp</h2><p>\n  Before. {SENTENCE}\n After.</p>"
WORD = word_with_styles(("Tower", "Heading 1"), ("A b.", "Normal"), ("Lamp", "Heading 2"), (SENTENCE, "Normal"))


@pytest.mark.parametrize(
    ("name", "data", "cited"),
    [
        ("a.txt", f"Before.\r\n\r\n{SENTENCE}\r\n".encode(), "a.txt"),
        ("a.md", MARKDOWN.encode(), "a.md › Tower › Lamp"),
        ("a.html", HTML.encode(), "a.html › Tower › Lamp"),
        ("a.rst", RST.encode(), "a.rst › Tower › Lamp"),
        ("a.docx", WORD, "a.docx › Tower › Lamp"),
        ("a.pdf", pdf("A cover.", SENTENCE), "a.pdf, page 2"),
    ],
)
def test_a_span_is_found_in_its_document(tmp_path: Path, name: str, data: bytes, cited: str) -> None:
    (tmp_path / name).write_bytes(data)
    document = read_document(tmp_path / name, name)
    store = passage_store(tmp_path / "p", (document, chunk_document(document, 60)))
    passages = {passage.id: passage for passage in store.get(range(len(store)))}
    tracer = Tracer([(passage.id, passage.text) for passage in passages.values()])
    (span,) = tracer.spans("He says: keeper counted exactly 412 steps, indeed")
    passage = passages[span.passage_id]
    place = find_place(store, name, passage.start + span.passage_start, passage.start + span.passage_end)
    assert (place.marked.split(), place.citation) == (["keeper", "counted", "exactly", "412", "steps"], cited)
