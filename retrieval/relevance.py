"""How likely a found passage is about what was asked: a logistic model of three comparable figures.

Scores of searches are comparable within one question only; these figures are so between questions. The numbers are
fitted by `python -m benchmarks relevance --fit` (docs/decisions/0018) and hold for one encoder's late interaction: with
another encoder nobody judges. Does not know what is done about passages that are about something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from indexes.passages import Passage
from indexes.postings import stems
from indexes.store import PassageIndex
from indexes.token_vectors import SCALE
from retrieval.encoders import Encoder
from retrieval.follow_ups import own_words

Figures = npt.NDArray[np.float64]


class Judge(Protocol):
    """(question, passages) -> probabilities (P,) that each passage is about the question."""

    def __call__(self, question: str, passages: Sequence[Passage]) -> Figures | None:
        """Judge passages for a question; None where the question gives nothing to judge by."""


@dataclass(frozen=True, slots=True)
class Fit:
    """p = 1 / (1 + exp(-(bias + dense x cosine + late x MaxSim + coverage x coverage))), for one encoder."""

    encoder: str
    bias: float
    dense: float
    late: float
    coverage: float

    def chances(self, figures: Figures) -> Figures:
        """Probabilities (P,) of figures (P, 3)."""
        logits = self.bias + figures @ np.array([self.dense, self.late, self.coverage])
        return np.asarray(1 / (1 + np.exp(-logits)))


ABOUT_DOCUMENTS = frozenset({  # "Summarize the main points of this file" is about every passage
    "document", "documents", "file", "files", "text", "texts", "passage", "passages", "page", "pages", "content",
    "contents", "summary", "summarize", "summarise", "overview", "main", "point", "points", "topic", "topics",
    "tell", "give", "please", "explain", "describe", "say", "says", "everything", "anything", "something",
})  # fmt: skip

FITTED = Fit("sentence-transformers/all-MiniLM-L6-v2", bias=-14.57, dense=4.70, late=20.60, coverage=4.56)


@dataclass(frozen=True, slots=True)
class RelevanceJudge:
    """Judges the passages of one index, which must hold per-token vectors."""

    encoder: Encoder
    index: PassageIndex
    fit: Fit = FITTED

    def __call__(self, question: str, passages: Sequence[Passage]) -> Figures | None:
        """Probabilities (P,); None for a question without a word that any passage could be about."""
        if unjudgeable(question):
            return None
        return self.fit.chances(self.figures(question, passages))

    def figures(self, question: str, passages: Sequence[Passage]) -> Figures:
        """(P, 3): the cosine of the dense vectors; the mean over the question's tokens of the best cosine with a token
        of the passage; and the part of the question's words, weighed by how rare each is in the index, that the
        passage holds."""
        assert self.index.tokens is not None
        dense, (asked,) = self.encoder.encode_tokens([question])
        rows = [passage.row for passage in passages]
        cosines = self.index.vectors.stored(rows) @ dense[0]
        late = [float((self.index.tokens.of(row).astype(np.float32) @ asked.T).max(axis=0).mean()) for row in rows]
        rarity = self.index.postings.rarity(question)
        total = sum(rarity.values())
        held = [sum(rarity[stem] for stem in rarity.keys() & stems(passage.text)) for passage in passages]
        return np.column_stack(
            [cosines, np.array(late) / SCALE, np.array(held) / total if total else np.zeros(len(rows))]
        )


def unjudgeable(question: str) -> bool:
    """Whether a question has no word that one passage could be about and another not."""
    return ABOUT_DOCUMENTS.issuperset(own_words(question))


def judge_of(encoder: Encoder, index: PassageIndex) -> Judge | None:
    """The judge of an index; None where the numbers are another encoder's, or no per-token vectors are stored."""
    if encoder.id != FITTED.encoder or index.tokens is None:
        return None
    return RelevanceJudge(encoder, index)
