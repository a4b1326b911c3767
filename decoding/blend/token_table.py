"""What drafting may know of a token's spelling: its kind, and which tokens are the same word written otherwise.

"The", " the" and " The" fold to one form, so an answer that begins a sentence with a passage's inner words still
matches it. Made once per tokenizer; the drafter sees numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

KINDS = 8
WORD, NAME, PIECE, DIGIT, PUNCTUATION, SPACE, CAPITAL, UNKNOWN = range(KINDS)
UNKNOWN_VOCABULARY = 1 << 18


@dataclass(frozen=True, slots=True)
class TokenTable:
    """kinds (V,) each token's kind; folded (V,) the smallest token that is the same word."""

    kinds: npt.NDArray[np.int64]
    folded: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.kinds)


def plain_table(vocabulary: int = UNKNOWN_VOCABULARY) -> TokenTable:
    """For token ids whose spelling is not known: every token is itself."""
    return TokenTable(np.full(vocabulary, UNKNOWN, np.int64), np.arange(vocabulary, dtype=np.int64))


def read_table(tokenizer: Any, vocabulary: int) -> TokenTable:
    """The table of a Hugging Face tokenizer, padded to the model's `vocabulary`."""
    known = min(len(tokenizer), vocabulary)
    spelled = tokenizer.batch_decode([[token] for token in range(known)])
    table = plain_table(vocabulary)
    first: dict[str, int] = {}
    for token, text in enumerate(spelled):
        table.kinds[token] = _kind(text)
        table.folded[token] = first.setdefault(text.strip().lower() or text, token)
    return table


def _kind(text: str) -> int:
    if not text.strip():
        return SPACE
    after_space = text.startswith(" ")
    head = text.lstrip()[0]
    if head.isdigit():
        return DIGIT
    if not head.isalpha():
        return PUNCTUATION
    if after_space:
        return NAME if head.isupper() else WORD
    return CAPITAL if head.isupper() else PIECE
