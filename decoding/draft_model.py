"""The `DraftModel` seam, for drafters that ask a small model: token ids in, token ids out.

A drafter says what the text is, every time; that the small model has read most of it already is its own concern.
Knows no drafter. The vocabulary must be the target's: `check_same_vocabulary` compares what the ids mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from decoding.growing_tree import children_of, follow
from decoding.target import TargetModel
from decoding.tree import EMPTY, ROOT, DraftTree, chain, depths, make_tree
from indexes.errors import PromptTooLongError, SettingError

READ_ROWS = 64  # how many tokens of unread text one pass reads: a row costs a vocabulary's worth of logits


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


class CausalDraftModel:
    """`DraftModel` around anything that can be a target. Keeps the KV cache of what two texts have in common.

    What the last pass tried and the next text goes on with is kept too, so accepted drafts are not read again.
    Raises PromptTooLongError for a text beyond the context limit and SettingError for an id outside the vocabulary
    (which would kill a process that computes on a GPU).
    """

    def __init__(self, model: TargetModel) -> None:
        self._model = model
        self.vocabulary = model.vocabulary
        self.context_limit = model.context_limit
        self._read: list[int] = []  # what the KV cache holds
        self._tried: tuple[int, DraftTree] | None = None  # the token and the tree that the last pass read after it

    @torch.inference_mode()
    def choices(self, text: Sequence[int], tree: DraftTree) -> list[int]:
        """(N + 1,) greedy next tokens, from one forward pass."""
        found: list[int] = self._logits(list(text), tree).argmax(dim=-1).tolist()
        return found

    @torch.inference_mode()
    def next_tokens(self, text: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        """The likeliest tokens after `text` and their softmax probabilities."""
        probs = self._logits(list(text), EMPTY)[0].float().softmax(dim=-1)
        top = probs.topk(min(count, len(probs)))
        return top.indices.tolist(), top.values.tolist()

    def reset(self) -> None:
        """Clear the KV cache."""
        self._model.truncate(0)
        self._read, self._tried = [], None

    def _logits(self, text: list[int], tree: DraftTree) -> torch.Tensor:
        """Logits (N + 1, V) after the text and each node, unread text and tree in one pass."""
        self._check(text, tree)
        unread = self._catch_up(text)
        lead = chain(unread[1:])
        moved = tree.parents + len(lead)  # the root of `tree` is the last of `lead`, or the root itself
        whole = make_tree([*lead.tokens.tolist(), *tree.tokens.tolist()], [*lead.parents.tolist(), *moved.tolist()])
        logits = self._model.forward(unread[0], whole)
        self._tried = unread[0], whole
        return logits[len(lead) :]

    def _check(self, text: list[int], tree: DraftTree) -> None:
        length = len(text) + int(depths(tree).max(initial=0))
        if not 0 < len(text) <= length <= self.context_limit:
            raise PromptTooLongError(f"a text of {length} tokens; the draft model reads 1 to {self.context_limit}")
        for token in (*text[len(self._read) :], *tree.tokens.tolist()):
            if not 0 <= token < self.vocabulary:
                raise SettingError(
                    f"token {token} is outside the draft model's vocabulary of {self.vocabulary}; "
                    "give a draft model made with the target's tokenizer"
                )

    def _catch_up(self, text: list[int]) -> list[int]:
        """Bring the cache to a beginning of `text`; returns the rest, from 1 to READ_ROWS tokens."""
        self._keep_what_was_tried(text)
        shared = _shared(self._read, text[:-1])
        if shared < len(self._read):
            del self._read[shared:]
            self._model.truncate(shared)
        if not self._read and len(text) > 1:
            self._model.prefill(text[:-1])
            self._read = text[:-1]
        while len(text) - len(self._read) > READ_ROWS:
            rows = text[len(self._read) : len(self._read) + READ_ROWS]
            self._model.forward(rows[0], chain(rows[1:]))
            self._model.keep(range(READ_ROWS - 1))
            self._read += rows
        return text[len(self._read) :]

    def _keep_what_was_tried(self, text: list[int]) -> None:
        tried, self._tried = self._tried, None
        ahead = text[len(self._read) : -1]
        if tried is None or not ahead or ahead[0] != tried[0] or text[: len(self._read)] != self._read:
            return
        path = follow(children_of(tried[1]), ROOT, ahead[1:])
        self._model.keep(path)
        self._read += ahead[: len(path) + 1]


def _shared(one: list[int], other: list[int]) -> int:
    """Length of the longest common beginning."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(at for at in range(length) if one[at] != other[at])


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
