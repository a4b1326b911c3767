from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.errors import DocumentError
from retrieval.documents import PARSERS, find_files, read_document
from tests.retrieval.files import pdf, word, word_with_body


def read(tmp_path: Path, name: str, data: bytes | str) -> str:
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return read_document(tmp_path / name, name).text


def reason(tmp_path: Path, name: str, data: bytes) -> str:
    with pytest.raises(DocumentError) as raised:
        read(tmp_path, name, data)
    return str(raised.value)


# Plain text and encodings


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "Käse — 日本 😀"),
        ("utf-8-sig", "Käse"),
        ("utf-16", "Käse — 日本 😀"),
        ("utf-32", "Käse 😀"),
        ("latin-1", "Käse"),
        ("cp1252", "He said “naïve” – and left."),
        ("latin-1", "Der Käse ist für die Mäuse, sagte Jürgen. Außerdem schön. " * 10),
        ("cp1251", "Привет, как дела? Это текст на русском языке. " * 10),
    ],
)
def test_text_in_many_encodings_is_read(tmp_path: Path, encoding: str, text: str) -> None:
    assert read(tmp_path, "a.txt", text.encode(encoding)) == text


def test_utf_16_without_any_other_sign_than_its_mark_is_read_in_either_order(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt", b"\xfe\xff\x00H\x00i") == "Hi"


def test_windows_line_ends_become_plain_ones(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt", "a\r\nb") == "a\nb"


@pytest.mark.parametrize("suffix", sorted(PARSERS))
@pytest.mark.parametrize("data", [b"", b" \n\t\r\n"])
def test_an_empty_file_says_so(tmp_path: Path, suffix: str, data: bytes) -> None:
    assert reason(tmp_path, f"a{suffix}", data) == "empty"


@pytest.mark.parametrize("suffix", [".txt", ".md", ".rst", ".html"])
@pytest.mark.parametrize("data", [b"abc\0def", bytes(range(1, 32)) * 20, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"])
def test_binary_files_say_so(tmp_path: Path, suffix: str, data: bytes) -> None:
    assert reason(tmp_path, f"a{suffix}", data) == "binary, not text"


def test_a_torn_utf_16_file_is_listed(tmp_path: Path) -> None:
    assert "not a readable txt file (UnicodeDecodeError" in reason(tmp_path, "a.txt", "Hi".encode("utf-16") + b"a")


def test_an_unsupported_type_says_so(tmp_path: Path) -> None:
    assert reason(tmp_path, "a.xyz", b"text") == "files of type .xyz are not supported"


def test_the_type_is_told_by_the_suffix_in_any_case(tmp_path: Path) -> None:
    assert read(tmp_path, "A.TXT", "text") == "text"


def test_a_document_knows_its_name_and_the_hash_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    document = read_document(tmp_path / "a.txt", "here/a.txt")
    assert (document.source, document.title, document.page_starts) == ("here/a.txt", "a.txt", ())
    assert document.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


# Markup


def test_markdown_loses_its_marks(tmp_path: Path) -> None:
    text = "# Head\n\nSome *big* [link](http://x) and `code`.\n\n- one\n- two\n\n```\nx = 1\n```\n"
    assert read(tmp_path, "a.md", text) == "Head\n\nSome big link and code.\n\none\n\ntwo\n\nx = 1"


def test_markdown_lists_thirty_deep_lose_nothing(tmp_path: Path) -> None:
    text = "".join(f"{'  ' * depth}- item{depth}\n" for depth in range(30))
    assert read(tmp_path, "a.md", text) == "\n\n".join(f"item{depth}" for depth in range(30))


def test_html_shows_what_a_browser_would(tmp_path: Path) -> None:
    text = "<head><title>T</title></head><body><script>x()</script><!-- no --><p>One <b>b</b>ig</p><div>two</div>three"
    assert read(tmp_path, "a.html", text) == "One big\n\ntwo\nthree"


def test_words_of_neighbouring_html_blocks_and_cells_do_not_run_together(tmp_path: Path) -> None:
    text = "intro<div>block</div>after<table><tr><td>a</td><td>b</td></tr></table>"
    assert read(tmp_path, "a.html", text).split() == ["intro", "block", "after", "a", "b"]


def test_html_says_its_own_encoding(tmp_path: Path) -> None:
    text = '<meta charset="iso-8859-2"><p>Łódź</p>'
    assert read(tmp_path, "a.html", text.encode("iso-8859-2")) == "Łódź"


@pytest.mark.parametrize("text", ["Käse", "é", "start éé\u3000 <<<", "日本"])
def test_html_that_says_no_encoding_is_utf_8_if_it_can_be(tmp_path: Path, text: str) -> None:
    page = read(tmp_path, "a.html", f"<h1>{text.replace('<', '&lt;')}</h1>".encode())
    assert page.split() == text.split()
    assert read(tmp_path, "b.html", "\ufeff<h1>Käse".encode()) == "Käse"


def test_html_in_no_known_encoding_is_guessed(tmp_path: Path) -> None:
    text = "Привет, как дела? Это текст на русском языке. " * 10
    assert read(tmp_path, "a.html", f"<p>{text}".encode("cp1251")) == text.strip()


def test_rst_loses_its_marks(tmp_path: Path) -> None:
    text = "Title\n=====\n\nSome *big* `link <http://x>`_.\n\n.. note:: careful\n\n.. a comment\n\n- one\n- two\n"
    assert read(tmp_path, "a.rst", text) == "Title\n\nSome big link.\n\ncareful\n\none\n\ntwo"


def test_rst_with_directives_that_docutils_does_not_know_stays_as_it_is(tmp_path: Path) -> None:
    text = "Title\n=====\n\n.. automodule:: this\n\nText.\n"
    assert read(tmp_path, "a.rst", text) == text


def test_rst_substitutions_are_filled_in(tmp_path: Path) -> None:
    assert read(tmp_path, "a.rst", ".. |v| replace:: 1.2\n\nVersion |v|.\n") == "Version 1.2."


@pytest.mark.parametrize("directive", ["include:: {}", "raw:: html\n   :file: {}", "csv-table::\n   :file: {}"])
def test_rst_cannot_read_other_files(tmp_path: Path, directive: str) -> None:
    (tmp_path / "secret").write_text("top secret")
    text = f"Public.\n\n.. {directive.format(tmp_path / 'secret')}\n"
    assert "top secret" not in read(tmp_path, "a.rst", text)


# PDF and Word


def test_pdf_pages_begin_where_their_text_does(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("first page", "second page", "", "fourth page"))
    document = read_document(tmp_path / "a.pdf", "a.pdf")
    pages = [document.page(document.text.index(word)) for word in ("first", "second", "fourth")]
    assert (len(document.page_starts), pages) == (4, [1, 2, 4])


def test_a_pdf_with_a_password_says_so(tmp_path: Path) -> None:
    assert reason(tmp_path, "a.pdf", pdf("secret", password="pw")) == "encrypted: it needs a password"


def test_a_pdf_with_an_empty_password_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, "a.pdf", pdf("open", password="")).strip() == "open"


def test_a_pdf_of_pictures_says_so(tmp_path: Path) -> None:
    assert reason(tmp_path, "a.pdf", pdf("", "")) == "holds no text (scanned pages?)"


def test_word_gives_paragraphs_and_tables(tmp_path: Path) -> None:
    assert (
        read(tmp_path, "a.docx", word("one", "two", table=(("a", "b"), ("c", "d")))) == "one\n\ntwo\n\na | b\n\nc | d"
    )


def test_an_encrypted_or_old_word_file_says_so(tmp_path: Path) -> None:
    assert reason(tmp_path, "a.docx", b"\xd0\xcf\x11\xe0" * 200) == "encrypted, or in the old .doc format"


# Hostile files: never anything but a text or a reason, and never a long wait

CELL = (
    b'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="100000000"/></w:tcPr>'
    b"<w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
)


def substitution_bomb() -> str:
    lines = [f".. |a{i}| replace:: {' '.join([f'|a{i + 1}|'] * 9)}\n" for i in range(9)]
    return "".join(lines) + ".. |a9| replace:: x\n\nText |a0|.\n"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("deep.html", b"<div>" * 20_000 + b"deep", "deep"),
        ("entities.html", b'<!DOCTYPE l [<!ENTITY a "' + b"&b;" * 99 + b'">]><p>text', "text"),
        ("spaces.html", b"<p>a" + b" " * 1_000_000 + b"b</p>", "a"),
        ("deep.md", b">" * 50_000 + b" deep\n\ntext", "text"),
        ("brackets.md", b"[" * 20_000 + b"text", "text"),
        ("bomb.rst", substitution_bomb(), "Text a0."),
        ("loop.rst", ".. |a| replace:: |a|\n\ntext |a|\n", "text a"),
        ("deep.rst", b"".join(b" " * depth + b"text\n\n" for depth in range(400)), "text"),
        ("line.rst", b"text " * 10_000, "text"),
        ("line.txt", b"a" * 5_000_000, "aaa"),
        ("merged.docx", word_with_body(CELL), "x"),
    ],
)
def test_a_file_that_is_built_to_take_for_ever_is_read_at_once(
    tmp_path: Path, name: str, data: bytes | str, text: str
) -> None:
    start = time.monotonic()
    assert text in read(tmp_path, name, data)
    assert time.monotonic() - start < 15


def test_a_zip_bomb_is_refused_before_it_is_unzipped(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as zipped, zipped.open("word/document.xml", "w") as member:
        for _ in range(201):
            member.write(bytes(2**20))
    assert reason(tmp_path, "a.docx", bomb.getvalue()) == "larger than 200 MB when unzipped"


@pytest.mark.parametrize("suffix", [".pdf", ".docx"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_listed_as_unreadable(tmp_path: Path, suffix: str, share: float) -> None:
    data = pdf("a page") if suffix == ".pdf" else word("a page")
    assert reason(tmp_path, f"a{suffix}", data[: int(share * len(data))]).startswith(
        f"not a readable {suffix[1:]} file"
    )


def test_a_zip_that_is_no_word_file_is_listed_as_unreadable(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("hello", "x")
    assert reason(tmp_path, "a.docx", file.getvalue()).startswith("not a readable docx file (KeyError")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=300), suffix=st.sampled_from(sorted(PARSERS)), start=st.booleans())
def test_random_bytes_end_in_storable_text_or_a_reason(tmp_path: Path, data: bytes, suffix: str, start: bool) -> None:
    magic = {".pdf": b"%PDF-1.4\n", ".docx": b"PK\x03\x04", ".html": b"<p>"}.get(suffix, b"") if start else b""
    (tmp_path / f"a{suffix}").write_bytes(magic + data)
    try:
        text = read_document(tmp_path / f"a{suffix}", "a").text
    except DocumentError as error:
        text = str(error)
    assert text.strip()
    assert "\0" not in text
    text.encode("utf-8")


# Files that are no files, and folders


@contextlib.contextmanager
def as_somebody_else() -> Iterator[Path]:
    """A folder that anybody may enter; inside, permissions count even if the tests run as root."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


def test_a_file_without_permission_says_so() -> None:
    with as_somebody_else() as folder:
        (folder / "a.txt").write_text("text")
        (folder / "a.txt").chmod(0)
        with pytest.raises(DocumentError, match="cannot be read: Permission denied"):
            read_document(folder / "a.txt", "a.txt")


def test_a_folder_without_permission_is_listed_and_the_others_are_read() -> None:
    with as_somebody_else() as folder:
        (folder / "closed").mkdir(0)
        (folder / "open.txt").write_text("text")
        skipped: dict[str, str] = {}
        found = list(find_files(folder, skipped))
        (folder / "closed").chmod(0o700)
    assert found == [folder / "open.txt"]
    assert skipped == {str(folder / "closed"): "cannot be read: Permission denied"}


def test_a_link_to_itself_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to(tmp_path / "a.txt")
    with pytest.raises(DocumentError, match="cannot be read: Too many levels of symbolic links"):
        read_document(tmp_path / "a.txt", "a.txt")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(DocumentError, match="not a regular file"):
        read_document(tmp_path / "a.txt", "a.txt")


def test_an_endless_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to("/dev/zero")
    with pytest.raises(DocumentError, match="not a regular file"):
        read_document(tmp_path / "a.txt", "a.txt")


def test_a_folder_gives_its_supported_files_and_no_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.md", "a/d.png", ".hidden.txt", ".git/e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert sorted(find_files(tmp_path, {})) == [tmp_path / "a" / "c.md", tmp_path / "b.txt"]


def test_a_link_back_to_its_own_folder_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert list(find_files(tmp_path, {})) == [tmp_path / "a.txt"]
