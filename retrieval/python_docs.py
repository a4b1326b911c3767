"""The built-in corpus: Python's language reference, which every Python carries in `pydoc_data.topics`."""

from __future__ import annotations

import hashlib
from pydoc_data import topics

from indexes.passages import Document

PYTHON_DOCS = "python-docs"


def python_docs() -> list[Document]:
    """One document per topic."""
    return [
        Document(f"{PYTHON_DOCS}/{topic}", topic, text, hashlib.sha256(text.encode("utf-8")).hexdigest())
        for topic, text in sorted(topics.topics.items())
    ]
