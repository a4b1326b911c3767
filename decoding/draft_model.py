"""The `DraftModel` seam, for drafters that ask a small model: token ids in, token ids out.

A drafter says what the text is, every time; that the small model has read most of it already is its own concern.
Knows no drafter, and no tensor. The vocabulary must be the target's: `check_same_vocabulary` compares what ids mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from decoding.tree import DraftTree
from indexes.errors import SettingError


class DraftModel(Protocol):
    """A smaller model with the target's vocabulary. Its guesses are hints; it may raise, or talk nonsense."""

    @property
    def vocabulary(self) -> int:
        """Number of token ids that it can read."""

    @property
    def context_limit(self) -> int:
        """The most tokens that it can read."""

    def choices(self, text: Sequence[int], tree: DraftTree) -> Sequence[int]:
        """(N + 1,) its greedy next token after `text` (at least one token), then after each node of `tree`."""

    def next_tokens(self, text: Sequence[int], count: int) -> tuple[Sequence[int], Sequence[float]]:
        """Its `count` likeliest tokens after `text`, likeliest first, and their probabilities."""

    def reset(self) -> None:
        """Forget all texts."""


def check_same_vocabulary(target_id: str, target: Any, draft_id: str, draft: Any) -> None:
    """Compare two transformers tokenizers: every id that both know must mean the same, and ordinary tokens be the same.

    Padding of the embedding does not count (Qwen2.5 has 151,936 rows at 0.5B and 152,064 at 7B), nor do special tokens
    that only one of them has. Raises SettingError naming both models and what differs.
    """
    vocabularies = [tokenizer.get_vocab() for tokenizer in (target, draft)]
    ours, theirs = ({id_: token for token, id_ in vocabulary.items()} for vocabulary in vocabularies)
    added = set(target.get_added_vocab().values()) | set(draft.get_added_vocab().values())
    different = [id_ for id_ in sorted(ours.keys() & theirs.keys()) if ours[id_] != theirs[id_]]
    missing = (ours.keys() ^ theirs.keys()) - added
    if not different and not missing:
        return
    example = f"; id {different[0]} is {ours[different[0]]!r} and {theirs[different[0]]!r}" if different else ""
    raise SettingError(
        f"the draft model {draft_id} has another vocabulary ({len(theirs):,} tokens) than {target_id} "
        f"({len(ours):,} tokens){example}; choose a smaller model of the same family with --draft-model"
    )
