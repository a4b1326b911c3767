"""A `DraftModel` around any causal language model, with the KV cache kept from one text to the next.

It reads through `TargetModel`, so whatever can be a target can be a draft model too. Knows no drafter.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from decoding.growing_tree import children_of, follow
from decoding.target import TargetModel
from decoding.tree import EMPTY, ROOT, DraftTree, chain, depths, make_tree
from indexes.errors import PromptTooLongError, SettingError

READ_ROWS = 64  # how many tokens of unread text one pass reads: a row costs a vocabulary's worth of logits


class CausalDraftModel:
    """`DraftModel` around anything that can be a target. What two texts have in common is read once.

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
        tokens = [*text, *tree.tokens.tolist()]
        for token in (min(tokens), max(tokens)):
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
