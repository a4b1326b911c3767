"""The `TargetModel` seam: the model whose words are kept, and the owner of the KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from decoding.tree import DraftTree


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

    def prefill(self, tokens: Sequence[int]) -> torch.Tensor:
        """Clear the cache, read the prompt, return the logits (V,) after its last token."""

    def forward(self, last: int, tree: DraftTree) -> torch.Tensor:
        """Read the last emitted token and a whole tree in one pass: logits (N + 1, V), the root's first.

        Nothing stays in the cache until `keep` is called.
        """

    def keep(self, path: Sequence[int]) -> None:
        """Commit the root and the accepted nodes of the last `forward`; all other nodes are dropped."""

    def truncate(self, length: int) -> None:
        """Keep only the first `length` tokens of the cache."""
