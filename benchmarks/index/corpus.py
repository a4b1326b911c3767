"""What an index is built of, wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from retrieval.indexing import Progress


class Corpus(Protocol):
    """Passages that were encoded."""

    @property
    def count(self) -> int:
        """How many passages."""

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""

    def texts(self, progress: Progress) -> Iterator[str]:
        """The passages' texts."""
