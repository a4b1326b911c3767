"""The headings of every kind of file: where they stand, to the character."""

from __future__ import annotations

import contextlib
import random
import re
import time
from pathlib import Path
from pydoc_data import topics

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.errors import DocumentError
from indexes.passages import Document, headings_at
from retrieval.chunking import chunk_document
from retrieval.documents import read_document
from retrieval.parsers.parsed import MAX_TITLE
from retrieval.python_docs import python_docs
from tests.retrieval.files import pdf, pdf_with_bookmarks, word, word_with_body, word_with_styles


def read(tmp_path: Path, name: str, data: bytes | str) -> Document:
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return read_document(tmp_path / name, name)


def outline(document: Document) -> list[tuple[int, str]]:
    """Levels and titles; each title is checked to stand at its start."""
    assert [h for h in document.headings if not document.text.startswith(h.title, h.start)] == []
    return [(heading.level, heading.title) for heading in document.headings]


# Kinds of files

MARKDOWN = """\
Before.

# Top *one*

Some text.

Sub `code`
----------

> ### Quoted

<h4>In <b>HTML</b></h4>

####

```
# no heading
```
"""


def test_markdown_headings_of_both_styles_in_quotes_and_in_html(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", MARKDOWN)
    assert outline(document) == [(1, "Top one"), (2, "Sub code"), (3, "Quoted"), (4, "In HTML")]
    assert document.headings[0].start == len("Before.\n\n")


def test_html_headings_after_white_space_has_gone(tmp_path: Path) -> None:
    page = "<body>\n\n  <div> x </div>\n\n\n\n<h1>\n  One\t </h1><p>text   <h3>a  <i>b</i>\n c</h3>end<h2> </h2>"
    document = read(tmp_path, "a.html", page)
    assert outline(document) == [(1, "One"), (3, "a  b\nc")]
    assert document.text == "x\n\nOne\n\ntext\n\na  b\nc\n\nend"


def test_a_heading_within_a_heading_counts_as_its_words(tmp_path: Path) -> None:
    document = read(tmp_path, "a.html", "<h1><div><h2>in</h2></div> out</h1><h2>next</h2>")
    assert [(level, title.split()) for level, title in outline(document)] == [(1, ["in", "out"]), (2, ["next"])]


def test_hidden_html_headings_are_none(tmp_path: Path) -> None:
    assert outline(read(tmp_path, "a.html", "<template><h1>no</h1></template><h1>yes</h1>")) == [(1, "yes")]


def test_rst_headings_by_their_depth(tmp_path: Path) -> None:
    source = "\n\nTop\n===\n\nText.\n\nSub *one*\n---------\n\nDeep\n~~~~\n\n.. a comment\n\nLast\n====\n\ny\n"
    assert outline(read(tmp_path, "a.rst", source)) == [(1, "Top"), (2, "Sub one"), (3, "Deep"), (1, "Last")]


def test_rst_that_stays_as_it_is_has_the_headings_that_its_lines_show(tmp_path: Path) -> None:
    source = "===\nTop\n===\n\n.. automodule:: this\n\nSub\n---\n\nText.\n"
    assert outline(read(tmp_path, "a.rst", source)) == [(1, "Top"), (2, "Sub")]


def test_word_headings_are_told_by_their_style(tmp_path: Path) -> None:
    data = word_with_styles(
        ("The title", "Title"), ("\tOne ", "Heading 1"), ("text", "Normal"), ("Own", "My heading"), ("", "Heading 2"),
        based_on={"My heading": "Heading 2"},
    )  # fmt: skip
    assert outline(read(tmp_path, "a.docx", data)) == [(0, "The title"), (1, "One"), (2, "Own")]


def test_pdf_bookmarks_are_headings_where_their_words_stand(tmp_path: Path) -> None:
    data = pdf_with_bookmarks(
        ("Cover, by somebody", ()),
        ("2  Setup of Windows and more", ((0, "2 Setup"), (1, "Windows"), (1, "Wind"), (1, "not there"))),
        ("Setup again", ((0, "Setup again"),)),
    )
    document = read(tmp_path, "a.pdf", data)
    assert [(level, title.split()) for level, title in outline(document)] == [
        (1, ["2", "Setup"]),
        (2, ["Windows"]),
        (1, ["Setup", "again"]),
    ]
    assert [document.page(heading.start) for heading in document.headings] == [2, 2, 3]


@pytest.mark.parametrize(
    ("name", "data"), [("a.txt", b"Title\n=====\n\ntext"), ("a.pdf", pdf("text")), ("a.docx", word("one"))]
)
def test_files_that_show_no_headings_have_none(tmp_path: Path, name: str, data: bytes) -> None:
    assert read(tmp_path, name, data).headings == ()


def test_the_built_in_corpus_has_headings() -> None:
    by_title = {document.title: document for document in python_docs()}
    assert outline(by_title["with"]) == [(1, 'The "with" statement')]
    compound = by_title["compound"]
    assert outline(compound)[:2] == [(1, "Compound statements"), (2, 'The "if" statement')]
    position = compound.text.index("irrefutable")
    assert [heading.title for heading in headings_at(compound.headings, position)] == [
        "Compound statements",
        'The "match" statement',
        "Irrefutable Case Blocks",
    ]
    assert all(outline(document) for document in by_title.values())
    assert len(by_title) == len(topics.topics)


# Properties

WORDS = st.text(st.sampled_from("ab \t\n<>&*_`#=-é😀\u3000"), max_size=30)
PIECES = st.lists(st.tuples(st.integers(0, 6), WORDS), min_size=1, max_size=12)


def html_page(pieces: list[tuple[int, str]]) -> str:
    return "start" + "".join(f"<h{level}>{words}</h{level}>" if level else f"<p>{words}" for level, words in pieces)


def markdown_page(pieces: list[tuple[int, str]]) -> str:
    return "start\n\n" + "\n\n".join(f"{'#' * level} {words}" for level, words in pieces)


def rst_page(pieces: list[tuple[int, str]]) -> str:
    lines = (f"{words.strip()}\n{'=-~^+,.'[level] * 80}\n" if level else words for level, words in pieces)
    return "start\n\n" + "\n\n".join(lines)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES, kind=st.sampled_from([("a.html", html_page), ("a.md", markdown_page), ("a.rst", rst_page)]))
def test_the_text_at_a_heading_begins_with_its_title(tmp_path: Path, pieces: list[tuple[int, str]], kind) -> None:  # type: ignore[no-untyped-def]
    name, page = kind
    document = read(tmp_path, name, page(pieces))
    for heading in document.headings:
        assert document.text.startswith(heading.title, heading.start)
        assert heading.title == heading.title.strip() != ""
    starts = [heading.start for heading in document.headings]
    assert starts == sorted(set(starts))


TITLES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=MAX_TITLE - 1)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=MAX_TITLE - 1), min_size=1, max_size=8
    )
)
def test_every_filled_html_heading_is_found_in_order(tmp_path: Path, words: list[str]) -> None:
    escaped = (word.replace("&", "&amp;").replace("<", "&lt;") for word in words)
    document = read(tmp_path, "a.html", '<meta charset="utf-8">x' + "".join(f"<h2>{word}</h2>" for word in escaped))
    # lists of words, for a browser shows line ends within a title as other white space than the file has
    expected = [word.split() for word in words if word.split()]
    assert [heading.title.split() for heading in document.headings] == expected


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", MARKDOWN * 40),
        ("a.html", "<h1>One</h1><p>some   words <b>and</b> more.\n" * 40),
        ("a.rst", "Top\n===\n\nsome *words* and more.\n\n" * 1 + "Words.  And\nwords.\n\n" * 60),
        ("a.txt", "Words.\r\n\r\n  And\twords.\n" * 60),
        ("a.pdf", pdf(*("Some words of a page." for _ in range(9)))),
        ("a.docx", word(*("Some words  of a\tparagraph." for _ in range(40)), table=(("a", "b"), ("c", "d")))),
    ],
)
def test_chunks_stand_in_the_text_character_by_character(tmp_path: Path, name: str, data: bytes | str) -> None:
    document = read(tmp_path, name, data)
    chunks = chunk_document(document, 100)
    assert len(chunks) > 5
    assert all(document.text[c.start : c.start + len(c.text)] == c.text for c in chunks)


# Hostile files


def test_a_page_that_is_all_heading_has_a_short_title(tmp_path: Path) -> None:
    document = read(tmp_path, "a.html", "<h1>" + "word " * 10_000)
    (heading,) = document.headings
    assert document.text.startswith(heading.title)
    assert MAX_TITLE - 5 <= len(heading.title) <= MAX_TITLE


STYLE_LOOP = (
    b'<w:p><w:pPr><w:pStyle w:val="Nothing"/></w:pPr><w:r><w:t>x</w:t></w:r></w:p>'
    b'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>y</w:t></w:r></w:p>'
)


@pytest.mark.parametrize(
    ("name", "data", "count"),
    [
        ("deep.html", "<h1>" * 20_000 + " " * 100_000 + "word", 1),
        ("many.html", "<h1>a</h1> b " * 30_000, 30_000),
        ("many.md", "# a\n\n" * 20_000, 20_000),
        ("signs.rst", "=" * 500_000 + "\n" + "-" * 500_000, 0),
        ("styles.docx", word_with_body(STYLE_LOOP), 1),
        ("many.pdf", pdf_with_bookmarks(("a " * 2000 + "b", tuple((0, "a " * 90) for _ in range(3000)))), 2000),
    ],
)
def test_headings_made_to_take_for_ever_are_read_at_once(
    tmp_path: Path, name: str, data: bytes | str, count: int
) -> None:
    start = time.monotonic()
    assert len(read(tmp_path, name, data).headings) == count
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        (rb"/Outlines", rb"/Outlinez"),
        (rb"/Title", rb"/Titlf"),
        (rb"/Dest", rb"/Dess"),
        (rb"/First \d+ 0 R", rb"/First 1 0 R"),
        (rb"/First \d+ 0 R", rb"/First (xx)"),
        (rb"\[ \d+ 0 R /Fit \]", rb"[ 1 0 R /Fit ]"),
        (rb"\[ \d+ 0 R /Fit \]", rb"[          ]"),
        (rb"\[ \d+ 0 R /Fit \]", rb"[ (x) 7 7 7 ]"),
    ],
)
def test_a_broken_outline_leaves_the_pages(tmp_path: Path, whole: bytes, broken: bytes) -> None:
    data, count = re.subn(whole, broken, pdf_with_bookmarks(("One", ((0, "One"),))))
    assert count >= 1
    assert read(tmp_path, "a.pdf", data).text.strip() == "One"


def test_flipped_bytes_of_a_pdf_with_bookmarks_end_in_a_text_or_a_reason(tmp_path: Path) -> None:
    data = pdf_with_bookmarks(("One", ((0, "One"), (1, "Two"))), ("Three", ((0, "Three"),)))
    places = random.Random(0).sample(range(len(data)), 200)
    for place in places:
        with contextlib.suppress(DocumentError):
            read(tmp_path, "a.pdf", data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
