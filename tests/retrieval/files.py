"""Makes PDF and Word files for tests."""

from __future__ import annotations

import io
import zipfile

import docx
from docx.enum.style import WD_STYLE_TYPE
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen import canvas

BODY = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%b</w:body></w:document>'


def pdf(*pages: str, password: str | None = None) -> bytes:
    """A PDF with a line of text on each page; a page without text gets a black square."""
    file = io.BytesIO()
    sheet = canvas.Canvas(file, encrypt=None if password is None else StandardEncryption(password))
    for page in pages:
        if page:
            sheet.drawString(72, 700, page)
        else:
            sheet.rect(72, 72, 100, 100, fill=1)
        sheet.showPage()
    sheet.save()
    return file.getvalue()


def pdf_with_bookmarks(*pages: tuple[str, tuple[tuple[int, str], ...]]) -> bytes:
    """A PDF with a line of text on each page, and bookmarks to it: their levels from 0 and titles."""
    file = io.BytesIO()
    sheet = canvas.Canvas(file)
    for number, (text, bookmarks) in enumerate(pages):
        sheet.drawString(72, 700, text)
        for place, (level, title) in enumerate(bookmarks):
            sheet.bookmarkPage(f"{number}-{place}")
            sheet.addOutlineEntry(title, f"{number}-{place}", level)
        sheet.showPage()
    sheet.save()
    return file.getvalue()


def word_with_styles(*paragraphs: tuple[str, str], based_on: dict[str, str] | None = None) -> bytes:
    """A .docx file with paragraphs and their styles; those in `based_on` are new ones."""
    document = docx.Document()
    for name, base in (based_on or {}).items():
        document.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH).base_style = document.styles[base]
    for text, style in paragraphs:
        document.add_paragraph(text, style)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def word(*paragraphs: str, table: tuple[tuple[str, ...], ...] = ()) -> bytes:
    """A .docx file with paragraphs, then a table."""
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        grid = document.add_table(len(table), len(table[0]))
        for row, cells in enumerate(table):
            for column, cell in enumerate(cells):
                grid.cell(row, column).text = cell
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def word_with_body(body: bytes) -> bytes:
    """A .docx file with this XML in its body."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word("x"))) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, BODY % body if name == "word/document.xml" else old.read(name))
    return file.getvalue()
