"""The `TargetModel` seam: the model whose words are kept, and the owner of the KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from decoding.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Keys and values of the first `length` tokens of a cache; what `parts` are is the target's own affair."""

    length: int
    memory_bytes: int
    parts: tuple[Any, ...]


class TargetModel(Protocol):
    """One sequence at a time. The cache holds every token but the last emitted one, which `forward` reads."""

    @property
    def vocabulary(self) -> int:
        """Number of token ids V."""

    @property
    def stop_tokens(self) -> frozenset[int]:
        """The tokens that end an answer, as the model's files say."""

    @property
    def kind(self) -> str:
        """How it computes, for people who read figures."""

    @property
    def context_limit(self) -> int:
        """The most tokens, prompt and answer together, that the model was made for."""

    @property
    def length(self) -> int:
        """Number of tokens in the cache."""

    def prefill(self, tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        """Read the prompt, return the logits (V,) after its last token.

        Its first `cached` tokens are in the cache already and are not read again; all else is cleared.
        """

    def forward(self, last: int, tree: DraftTree) -> torch.Tensor:
        """Read the last emitted token and a whole tree in one pass: logits (N + 1, V), the root's first.

        Nothing stays in the cache until `keep` is called.
        """

    def keep(self, path: Sequence[int]) -> None:
        """Commit the root and the accepted nodes of the last `forward`; all other nodes are dropped."""

    def truncate(self, length: int) -> None:
        """Keep only the first `length` tokens of the cache."""

    def snapshot(self) -> Snapshot:
        """A copy of the cache's tokens in use."""

    def restore(self, snapshot: Snapshot) -> None:
        """Make the cache what it was when the snapshot was taken."""
