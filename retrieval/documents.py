"""Reads people's files into plain text with page starts and headings: one parser per suffix.

Does not know chunks or indexes. A file that cannot be read raises DocumentError with the reason; nothing else
escapes, whatever the file holds.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from indexes.errors import DocumentError
from indexes.passages import Document
from retrieval.parsers.html import parse_html
from retrieval.parsers.markdown import parse_markdown
from retrieval.parsers.parsed import Parsed, headings_of
from retrieval.parsers.pdf import parse_pdf
from retrieval.parsers.plain import parse_plain
from retrieval.parsers.rst import parse_rst
from retrieval.parsers.word import parse_word

MAX_BYTES = 200 * 2**20

PARSERS: dict[str, Callable[[bytes], Parsed]] = {
    ".txt": parse_plain,
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".html": parse_html,
    ".htm": parse_html,
    ".pdf": parse_pdf,
    ".docx": functools.partial(parse_word, max_bytes=MAX_BYTES),
    ".rst": parse_rst,
}


def read_document(path: Path, source: str) -> Document:
    """Read one file; `source` is what the index calls it. Raises DocumentError with the reason."""
    parse = PARSERS.get(path.suffix.lower())
    if parse is None:
        raise DocumentError(f"files of type {path.suffix or '(none)'} are not supported")
    data = _read(path)
    if not data.strip():
        raise DocumentError("empty")
    try:
        parsed = parse(data)
    except DocumentError:
        raise
    except Exception as error:  # parsers raise whatever they like on broken files; the reason is listed
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DocumentError(f"not a readable {path.suffix[1:]} file ({reason})") from error
    text = storable(parsed.text).replace("\0", "\ufffd")
    if not text.strip():
        scanned = " (scanned pages?)" if parsed.page_starts else ""
        raise DocumentError(f"holds no text{scanned}")
    digest, headings = hashlib.sha256(data).hexdigest(), headings_of(text, parsed.marks)
    return Document(source, storable(path.name), text, digest, parsed.page_starts, headings)


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
