"""The built-in corpus: Python's language reference, which every Python carries in `pydoc_data.topics`."""

from __future__ import annotations

import hashlib
from pydoc_data import topics

from indexes.passages import Document
from retrieval.parsers.parsed import headings_of
from retrieval.parsers.plain import underlined

PYTHON_DOCS = "python-docs"


def python_docs() -> list[Document]:
    """One document per topic."""
    return [_document(topic, text) for topic, text in sorted(topics.topics.items())]


def _document(topic: str, text: str) -> Document:
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    headings = headings_of(text, underlined(text))
    return Document(f"{PYTHON_DOCS}/{topic}", topic, text, digest, headings=headings)
