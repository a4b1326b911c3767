"""Word's .docx: paragraphs and tables; headings are paragraphs in a style that is, or is based on, a heading's."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import docx

from indexes.errors import DocumentError
from retrieval.parsers.parsed import Parsed, block, joined

MAX_STYLES = 10  # that are based on one another
HEADING = re.compile(r"Heading ([1-9])")


def parse_word(data: bytes, max_bytes: int) -> Parsed:
    """The body. Raises DocumentError for what unzips to more than `max_bytes`, or is the old format."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("encrypted, or in the old .doc format")
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        if sum(member.file_size for member in zipped.infolist()) > max_bytes:
            raise DocumentError(f"larger than {max_bytes // 2**20} MB when unzipped")
    return joined(_blocks(docx.Document(io.BytesIO(data))))


def _blocks(document: Any) -> Iterator[Parsed]:
    levels: dict[str | None, int | None] = {None: None}
    for item in document.iter_inner_content():
        if isinstance(item, docx.table.Table):
            # not row.cells, which repeats a merged cell as often as the file says
            rows = ((docx.table._Cell(cell, item) for cell in row._tr.tc_lst) for row in item.rows)
            yield from (block(" | ".join(cell.text for cell in row)) for row in rows)
        else:
            style = item._p.style  # an id: looking the style itself up for each paragraph is slow
            if style not in levels:
                levels[style] = _level(item.style)
            yield block(item.text, levels[style])


def _level(style: Any) -> int | None:
    """A heading's level, 0 for the title's; None for another style."""
    for _ in range(MAX_STYLES):
        if style is None:
            break
        if style.name == "Title":
            return 0
        if match := HEADING.fullmatch(style.name or ""):
            return int(match[1])
        style = style.base_style
    return None
