"""The lean target model: `TargetModel` for the Llama family without transformers' forward pass.

How a tree is verified can be exchanged (`Verify`): in plain PyTorch here, on captured CUDA graphs in
`decoding.lean.cuda_graphs`. Cache, prefill and the bookkeeping between passes are the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from decoding.cache_memory import CacheMemory, of_tensors
from decoding.lean.cache import KeyValueCache
from decoding.lean.shape import LeanShape
from decoding.lean.torch_model import EagerRows, LeanModel
from decoding.lean.weights import LeanWeights
from decoding.target import Snapshot
from decoding.tree import EMPTY, DraftTree, Ints, ancestor_mask, depths
from indexes.errors import PromptTooLongError


class Verify(Protocol):
    """One forward pass over the last token and a tree, behind what the cache holds."""

    def __call__(self, last: int, tree: DraftTree) -> Tensor:
        """Logits (N + 1, V), the root's first. They need to last until the next call only."""


def row_positions(tree: DraftTree, length: int, context_limit: int) -> Ints:
    """(N + 1,) where the root and each node stand in the text, with `length` tokens before the root.

    Beyond the context limit there is no position: such rows stand at the last one, and their logits mean nothing. The
    decode loop asks for none of them.
    """
    positions: Ints = np.minimum(length + np.concatenate([[0], depths(tree)]), context_limit - 1)
    return positions


class EagerVerify:
    """`Verify` in plain PyTorch, on any device."""

    def __init__(self, model: LeanModel, cache: KeyValueCache) -> None:
        self._model = model
        self._cache = cache

    def __call__(self, last: int, tree: DraftTree) -> Tensor:
        """As `Verify` says."""
        length, rows, device = self._cache.length, len(tree) + 1, self._model.device
        positions = torch.from_numpy(row_positions(tree, length, self._model.shape.context_limit)).to(device)
        mask = None
        if len(tree):
            mask = torch.ones(rows, rows, dtype=torch.bool)
            mask[0, 1:] = False
            mask[1:, 1:] = torch.from_numpy(ancestor_mask(tree))
            mask = mask.to(device)
        self._cache.reserve(length + rows)
        operations = EagerRows(self._model, self._cache, length, positions, mask)
        return self._model.logits(torch.tensor([last, *tree.tokens.tolist()], device=device), operations)


class LeanTarget:
    """`TargetModel` for one model of the Llama family and one sequence at a time, on the CPU or a GPU.

    verify is how trees are verified; the cache belongs to it too. None: in plain PyTorch.
    """

    def __init__(
        self,
        shape: LeanShape,
        weights: LeanWeights,
        stop_tokens: frozenset[int] | None = None,
        verify: Verify | None = None,
        cache: KeyValueCache | None = None,
    ) -> None:
        self._model = LeanModel(shape, weights)
        self._cache = cache or KeyValueCache(shape, self._model.dtype, self._model.device)
        self._verify = verify or EagerVerify(self._model, self._cache)
        self.vocabulary = shape.vocabulary
        self.context_limit = shape.context_limit
        self.stop_tokens = shape.stop_tokens if stop_tokens is None else stop_tokens
        self.kind = f"lean, PyTorch on {self._model.device.type}"

    @property
    def length(self) -> int:
        """Number of tokens kept in the cache."""
        return self._cache.length

    @property
    def cache_memory(self) -> CacheMemory:
        """Bytes of keys and values."""
        return self._cache.memory

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights."""
        return of_tensors(self._model.weights.tensors())

    @torch.inference_mode()
    def prefill(self, tokens: Sequence[int], cached: int = 0) -> Tensor:
        """Read the prompt behind the `cached` first tokens: logits (V,) after its last token.

        Raises PromptTooLongError when there are more tokens than the model has positions.
        """
        if not 0 < len(tokens) <= self.context_limit:
            raise PromptTooLongError(f"the prompt has {len(tokens)} tokens; the model reads 1 to {self.context_limit}")
        self._cache.truncate(cached)
        self._cache.reserve(len(tokens))
        device = self._model.device
        positions = torch.arange(cached, len(tokens), device=device)
        operations = EagerRows(self._model, self._cache, cached, positions, None)
        logits = self._model.logits(torch.tensor(tokens[cached:], device=device), operations, last_only=True)[0]
        self._cache.length = len(tokens)
        return logits

    @torch.inference_mode()
    def forward(self, last: int, tree: DraftTree = EMPTY) -> Tensor:
        """Read the last token and a tree: logits (N + 1, V). Nothing of it stays without `keep`.

        With captured graphs the next call overwrites them.
        """
        return self._verify(last, tree)

    @torch.inference_mode()
    def keep(self, path: Sequence[int]) -> None:
        """Commit the root and the nodes of `path`; drop the rest of the last tree."""
        self._cache.keep([0, *(node + 1 for node in path)])

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens of the cache."""
        self._cache.truncate(length)

    @torch.inference_mode()
    def snapshot(self) -> Snapshot:
        """A copy of keys and values."""
        part = self._cache.store[:, :, :, : self.length].clone()
        return Snapshot(self.length, part.nbytes, (part,))

    @torch.inference_mode()
    def restore(self, snapshot: Snapshot) -> None:
        """Make the cache what it was when the snapshot was taken."""
        self._cache.truncate(0)
        self._cache.reserve(snapshot.length)
        self._cache.store[:, :, :, : snapshot.length] = snapshot.parts[0]
        self._cache.length = snapshot.length
