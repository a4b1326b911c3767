"""Prompt lookup decoding (Saxena 2023; transformers' `prompt_lookup_num_tokens`): the baseline that people have.

Looks for the first earlier place in prompt and answer where the last 3 (then 2, then 1) tokens stand, and drafts
the tokens after it. Knows nothing of passages: it runs across their ends, as the original does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.tree import EMPTY, DraftTree, chain


@dataclass(slots=True)
class PromptLookupDrafter:
    """max_ngram is the longest suffix looked up, copy_length the most tokens drafted."""

    likely: ClassVar[int] = 0
    max_ngram: int = 3
    copy_length: int = 10
    _sequence: list[int] = field(default_factory=list)
    _prompt_length: int = 0
    _first: dict[tuple[int, ...], int] = field(default_factory=dict)
    _indexed: int = 0

    def start(self, request: DraftRequest) -> None:
        """Index the prompt."""
        self.reset()
        self._sequence = list(request.prompt)
        self._prompt_length = len(self._sequence)

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """A chain copied from the first match of the longest suffix."""
        sequence = self._sequence
        sequence.extend(context[len(sequence) - self._prompt_length :])
        self._index()
        for length in range(min(self.max_ngram, len(sequence)), 0, -1):
            follows = self._first.get(tuple(sequence[-length:]))
            if follows is not None:
                return chain(sequence[follows : follows + min(self.copy_length, max_nodes)])
        return EMPTY

    def _index(self) -> None:
        """Remember where each n-gram first ended, once a token follows it: so a suffix never finds itself."""
        for end in range(self._indexed + 1, len(self._sequence)):
            for length in range(1, min(self.max_ngram, end) + 1):
                self._first.setdefault(tuple(self._sequence[end - length : end]), end)
        self._indexed = max(self._indexed, len(self._sequence) - 1)

    def observe(self, observed: Observation) -> None:
        """Nothing to learn: `propose` reads the context."""

    def reset(self) -> None:
        """Forget the prompt and the answer."""
        self._sequence, self._first = [], {}
        self._prompt_length = self._indexed = 0
