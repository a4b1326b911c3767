"""A `Finder` over pages that came with one question and are too long to be read whole: their best pieces by BM25.

No encoder is asked: the pages are read for one question only, and encoding them all would take longer than answering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexes.passages import Passage
from indexes.postings import postings_of
from retrieval.chunking import chunk_text
from retrieval.conversation import Turn
from retrieval.finder import Found


@dataclass(frozen=True, slots=True)
class Evidence:
    """`pages` are (id, text) pairs; they are cut into passages of at most `chunk_chars` characters."""

    pages: Sequence[tuple[str, str]]
    chunk_chars: int

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """The `top_k` best passages; the first ones if none shares a word with the question."""
        passages = self._passages()
        if not passages:
            return []
        scores = postings_of(passage.text for passage in passages).scores(question)
        best = sorted(range(len(passages)), key=lambda row: -scores[row])[:top_k]  # stable: ties in the pages' order
        return [Found(passages[row], float(scores[row])) for row in best]

    def _passages(self) -> list[Passage]:
        passages: list[Passage] = []
        for name, text in self.pages:
            for ordinal, chunk in enumerate(chunk_text(text, self.chunk_chars)):
                passages.append(Passage(len(passages), f"{name}#{ordinal}", name, name, chunk.start, chunk.text))
        return passages
