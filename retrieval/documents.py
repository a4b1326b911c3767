"""Reads people's files into plain text with page starts: one parser per suffix, each a well-kept library.

Does not know chunks or indexes. A file that cannot be read raises DocumentError with the reason; nothing else
escapes, whatever the file holds.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bs4
import charset_normalizer
import docx
import pypdf
from bs4.element import PreformattedString
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers import rst
from docutils.utils import new_document
from markdown_it import MarkdownIt
from pypdf.errors import FileNotDecryptedError

from indexes.errors import DocumentError
from indexes.passages import Document

MAX_BYTES = 200 * 2**20
MAX_NESTING = 100  # of Markdown blocks; deeper ones are left out

BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"} | {
    codecs.BOM_UTF16_BE: "utf-16"  # UTF-32 first: its little-endian mark begins with UTF-16's
}
CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\v\f\r\x1a\x1b"))

HIDDEN = {"script", "style", "template", "noscript", "head"}
BREAKS = (
    dict.fromkeys(("p", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "table", "blockquote"), "\n\n")
    | dict.fromkeys(("div", "ul", "ol", "li", "dl", "dt", "dd", "tr", "br", "hr", "figure", "figcaption"), "\n")
    | dict.fromkeys(("section", "article", "header", "footer", "main", "nav", "aside", "address", "form"), "\n")
    | dict.fromkeys(("td", "th", "option"), " ")
)

Text = tuple[str, tuple[int, ...]]  # the text, and the character at which each page starts


def read_document(path: Path, source: str) -> Document:
    """Read one file; `source` is what the index calls it. Raises DocumentError with the reason."""
    parse = PARSERS.get(path.suffix.lower())
    if parse is None:
        raise DocumentError(f"files of type {path.suffix or '(none)'} are not supported")
    data = _read(path)
    if not data.strip():
        raise DocumentError("empty")
    try:
        text, page_starts = parse(data)
    except DocumentError:
        raise
    except Exception as error:  # parsers raise whatever they like on broken files; the reason is listed
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DocumentError(f"not a readable {path.suffix[1:]} file ({reason})") from error
    text = storable(text).replace("\0", "\ufffd")
    if not text.strip():
        scanned = " (scanned pages?)" if page_starts else ""
        raise DocumentError(f"holds no text{scanned}")
    return Document(source, storable(path.name), text, hashlib.sha256(data).hexdigest(), page_starts)


def storable(text: str) -> str:
    """The text with a question mark for each lone surrogate: file names and broken files hold them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DocumentError("not a regular file")  # reading a pipe or a device may never end
        if status.st_size > MAX_BYTES:
            raise DocumentError(f"larger than {MAX_BYTES // 2**20} MB")
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}") from error


def find_files(root: Path, skipped: dict[str, str]) -> Iterator[Path]:
    """The supported files below a folder, sorted, hidden ones left out; a file given by name is yielded as it is.

    Links to folders are not followed. Folders that cannot be read go into `skipped` with the reason.
    """
    if not root.is_dir():
        yield root
        return

    def skip(error: OSError) -> None:
        skipped[str(error.filename)] = f"cannot be read: {error.strerror}"

    for folder, folders, files in os.walk(root, onerror=skip):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix.lower() in PARSERS and not name.startswith("."):
                yield path


def _decode(data: bytes) -> str:
    for mark, encoding in BOMS.items():
        if data.startswith(mark):
            return data.decode(encoding)
    _refuse_binary(data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        high = sum(byte > 127 for byte in data[:256])
        if len(data) < 256 and high * 3 < len(data):  # too short to guess from: Western, as most such files are
            return data.decode("cp1252", "replace")
        best = charset_normalizer.from_bytes(data).best()
        if best is None:
            raise DocumentError("binary, or in an unknown encoding") from None
        return str(best)


def _refuse_binary(data: bytes) -> None:
    if b"\0" in data or len(data.translate(None, CONTROLS)) < 0.95 * len(data):
        raise DocumentError("binary, not text")


def _plain(data: bytes) -> Text:
    return _decode(data).replace("\r\n", "\n"), ()


def _markdown(data: bytes) -> Text:
    """Markdown's words without its marks, a blank line between blocks."""
    blocks: list[str] = []
    for token in MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table").parse(_decode(data)):
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
    """The words a browser would show, a line break around each block."""
    pieces: list[str] = []
    waiting: list[Any] = [bs4.BeautifulSoup(html, "lxml")]  # not recursive: pages may nest as deeply as they like
    while waiting:
        node = waiting.pop()
        if isinstance(node, bs4.Tag):
            if node.name not in HIDDEN:
                around = BREAKS.get(node.name, "")
                waiting.extend((around, *reversed(node.contents), around))
        elif not isinstance(node, PreformattedString):  # those are comments, declarations and their like
            pieces.append(node)
    lines = "\n".join(line.strip(" \t") for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _html(data: bytes) -> Text:
    if not data.startswith(tuple(BOMS)):
        _refuse_binary(data)
    return _soup_text(data), ()


def _rst(data: bytes) -> Text:
    """reStructuredText by docutils; where it meets directives that it does not know, the source as it stands.

    Files may not include others or pass raw markup through. docutils' transforms are left out: nested
    substitutions would let a small file grow without end.
    """
    source = _decode(data)
    settings = get_default_settings(rst.Parser)
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = io.StringIO()
    tree = new_document("", settings)
    try:
        rst.Parser().parse(source, tree)
    except RecursionError:
        return source, ()
    if any(message["level"] > 2 for message in tree.findall(nodes.system_message)):
        return source, ()
    for reference in list(tree.findall(nodes.substitution_reference)):
        definition = tree.substitution_defs.get(reference.get("refname", ""))
        if definition is not None and not next(iter(definition.findall(nodes.substitution_reference)), None):
            reference.replace_self(nodes.Text(definition.astext()))
    for hidden in list(tree.findall(lambda node: isinstance(node, nodes.Invisible | nodes.system_message))):
        if hidden.parent is not None:
            hidden.parent.remove(hidden)
    return tree.astext().strip(), ()


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
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        if sum(member.file_size for member in zipped.infolist()) > MAX_BYTES:
            raise DocumentError(f"larger than {MAX_BYTES // 2**20} MB when unzipped")
    blocks: list[str] = []
    for block in docx.Document(io.BytesIO(data)).iter_inner_content():
        if isinstance(block, docx.table.Table):
            # not row.cells, which repeats a merged cell as often as the file says
            rows = ((docx.table._Cell(cell, block) for cell in row._tr.tc_lst) for row in block.rows)
            blocks.extend(" | ".join(cell.text for cell in row) for row in rows)
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
