"""Reads people's files into plain text with page starts: one parser per suffix, each a well-kept library.

Does not know chunks or indexes. A file that cannot be read raises DocumentError with the reason; nothing else
escapes, whatever the file holds.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import bs4
import charset_normalizer
import docutils.core
import docutils.utils
import docx
import pypdf
from markdown_it import MarkdownIt
from pypdf.errors import FileNotDecryptedError

from indexes.errors import DocumentError
from indexes.passages import Document

MAX_BYTES = 200 * 2**20

Text = tuple[str, tuple[int, ...]]  # the text, and the character at which each page starts


def read_document(path: Path, source: str) -> Document:
    """Read one file; `source` is what the index calls it. Raises DocumentError with the reason."""
    parse = PARSERS.get(path.suffix.lower())
    if parse is None:
        raise DocumentError(f"files of type {path.suffix or '(none)'} are not supported")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DocumentError(f"larger than {MAX_BYTES // 2**20} MB")
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}") from error
    if not data.strip():
        raise DocumentError("empty")
    try:
        text, page_starts = parse(data)
    except DocumentError:
        raise
    except Exception as error:  # parsers raise whatever they like on broken files; the reason is listed
        raise DocumentError(f"not a readable {path.suffix[1:]} file ({type(error).__name__}: {error})") from error
    text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be stored
    if not text.strip():
        scanned = " (scanned pages?)" if page_starts else ""
        raise DocumentError(f"holds no text{scanned}")
    return Document(source, path.name, text, hashlib.sha256(data).hexdigest(), page_starts)


def find_files(root: Path) -> Iterator[Path]:
    """The supported files below a folder, sorted, hidden ones left out; a file given by name is yielded as it is."""
    if not root.is_dir():
        yield root
        return
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if path.suffix.lower() in PARSERS and not hidden and not path.is_dir():
            yield path


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    if b"\0" in data:
        raise DocumentError("binary, not text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        best = charset_normalizer.from_bytes(data).best()
        if best is None:
            raise DocumentError("binary, or in an unknown encoding") from None
        return str(best)


def _plain(data: bytes) -> Text:
    return _decode(data).replace("\r\n", "\n"), ()


def _markdown(data: bytes) -> Text:
    """Markdown's words without its marks, a blank line between blocks."""
    blocks: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(_decode(data)):
        if token.type == "inline":
            parts = (child.content if child.content else "\n" for child in token.children or [] if _shown(child.type))
            blocks.append("".join(parts))
        elif token.type in ("fence", "code_block"):
            blocks.append(token.content.rstrip("\n"))
        elif token.type == "html_block":
            blocks.append(_soup_text(token.content))
    return "\n\n".join(block for block in blocks if block.strip()), ()


def _shown(kind: str) -> bool:
    return kind in ("text", "code_inline", "softbreak", "hardbreak", "image")


def _soup_text(html: str | bytes) -> str:
    """The words a browser would show, a line break after each block."""
    soup = bs4.BeautifulSoup(html, "lxml")
    for hidden in soup(["script", "style", "template", "noscript", "head"]):
        hidden.decompose()
    for block in soup(["p", "div", "li", "tr", "br", "pre", "section", "article", "h1", "h2", "h3", "h4", "h5", "h6"]):
        block.append("\n\n" if block.name in ("p", "pre") or re.fullmatch("h[1-6]", block.name) else "\n")
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", soup.get_text())
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _html(data: bytes) -> Text:
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DocumentError("binary, not text")
    return _soup_text(data), ()


def _rst(data: bytes) -> Text:
    """reStructuredText by docutils; where it meets directives that it does not know, the source as it stands.

    Files may not include others or pass raw markup through.
    """
    source = _decode(data)
    settings = {
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "report_level": 5,
        "halt_level": 5,
        "warning_stream": io.StringIO(),
        "input_encoding": "unicode",
    }
    tree = docutils.core.publish_doctree(source, settings_overrides=settings)
    problems = tree.findall(lambda node: node.tagname in ("system_message", "problematic"))
    return (source if next(iter(problems), None) is not None else tree.astext()), ()


def _pdf(data: bytes) -> Text:
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentError("encrypted: it needs a password")
    try:
        pages = [page.extract_text() for page in reader.pages]
    except FileNotDecryptedError as error:
        raise DocumentError("encrypted: it needs a password") from error
    starts, position = [], 0
    for page in pages:
        starts.append(position)
        position += len(page) + 2
    return "\n\n".join(pages), tuple(starts)


def _docx(data: bytes) -> Text:
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("encrypted, or in the old .doc format")
    blocks: list[str] = []
    for block in docx.Document(io.BytesIO(data)).iter_inner_content():
        if isinstance(block, docx.table.Table):
            blocks.extend(" | ".join(cell.text for cell in row.cells) for row in block.rows)
        else:
            blocks.append(block.text)
    return "\n\n".join(block for block in blocks if block.strip()), ()


PARSERS: dict[str, Callable[[bytes], Text]] = {
    ".txt": _plain,
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".pdf": _pdf,
    ".docx": _docx,
    ".rst": _rst,
}
