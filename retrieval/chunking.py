"""Cuts a document into chunks at paragraphs, then sentences, then lines, and keeps where each starts."""

from __future__ import annotations

import itertools

from langchain_text_splitters import RecursiveCharacterTextSplitter

from indexes.passages import Chunk, Document

SEPARATORS = [r"\n\s*\n", r"(?<=[.!?])\s+", r"\n", r"\s", ""]


def chunk_text(text: str, max_chars: int) -> list[Chunk]:
    """Chunks of at most `max_chars` characters; `text[c.start:].startswith(c.text)` holds for each."""
    splitter = RecursiveCharacterTextSplitter(
        separators=SEPARATORS,
        is_separator_regex=True,
        keep_separator="end",
        chunk_size=max_chars,
        chunk_overlap=0,
        strip_whitespace=True,
    )
    chunks: list[Chunk] = []
    position = 0
    for piece in filter(str.strip, splitter.split_text(text)):  # it lets some blank pieces through
        start = text.index(piece, position)  # in order and without overlap, so the search begins at the last end
        position = start + len(piece)
        chunks.append(Chunk(start, piece))
    return chunks


def chunk_document(document: Document, max_chars: int) -> list[Chunk]:
    """The chunks of a document; none runs across the end of a page, so each has one page to cite."""
    bounds = [*document.page_starts, len(document.text)] if document.page_starts else [0, len(document.text)]
    return [
        Chunk(begin + chunk.start, chunk.text)
        for begin, end in itertools.pairwise(bounds)
        for chunk in chunk_text(document.text[begin:end], max_chars)
    ]
