"""A target model around any Hugging Face causal LM: a tree mask, explicit positions, and our own cache.

Which architectures that works for, and how they differ, is the concern of `decoding.architecture`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from decoding.architecture import FULL, SLIDING, check_reads_trees, read_architecture, use_tree_attention
from decoding.cache import TreeCache
from decoding.cache_memory import CacheMemory, of_tensors
from decoding.target import Snapshot
from decoding.tree import EMPTY, DraftTree, ancestor_mask, depths
from indexes.errors import ModelError


def load_hf_model(folder: Path, device: str, dtype: torch.dtype) -> PreTrainedModel:
    """Load a causal LM from a Hugging Face folder (safetensors).

    Raises ModelError, naming the folder, when it does not hold one.
    """
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, local_files_only=True
        )
    except Exception as error:  # damaged files and packages that a quantized model lacks raise anything
        raise ModelError(f"no causal language model could be loaded from {folder}: {error}") from error
    return model.to(device).eval()


class HuggingFaceTarget:
    """`TargetModel` for one model and one sequence at a time.

    Raises UnsupportedModelError, naming the reason, for a model that cannot verify draft trees: layers whose state
    cannot be cut back (state-space, linear or chunked attention), attention sinks, attention of its own making.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        architecture = read_architecture(model)
        use_tree_attention(model)
        self._model = model
        self._kinds = architecture.kinds
        self._window = architecture.window
        self._cache = TreeCache(architecture.layers)
        self._committed = 0
        self.vocabulary = architecture.vocabulary
        self.context_limit = architecture.context_limit
        eos = model.generation_config.eos_token_id if model.generation_config else None
        self.stop_tokens = frozenset([eos] if isinstance(eos, int) else eos or [])
        self.kind = "general, transformers' forward pass"
        check_reads_trees(self, architecture.name)

    @property
    def length(self) -> int:
        """Number of tokens kept in the cache."""
        return self._committed

    @property
    def cache_memory(self) -> CacheMemory:
        """Bytes of keys and values."""
        return self._cache.memory(self._committed)

    @property
    def weight_bytes(self) -> int:
        """Bytes of parameters and buffers."""
        return of_tensors([*self._model.parameters(), *self._model.buffers()])

    @torch.inference_mode()
    def prefill(self, tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        """Read the prompt behind the `cached` first tokens: logits (V,) after its last token."""
        self.truncate(cached)
        count = len(tokens) - cached
        mask = None
        if cached or (self._window is not None and count > self._window):
            mask = torch.ones(count, count, dtype=torch.bool, device=self._model.device).tril()
        positions = torch.arange(cached, len(tokens))
        logits = self._logits(list(tokens[cached:]), positions, mask, last_only=True)[0]
        self._committed = len(tokens)
        return logits

    @torch.inference_mode()
    def forward(self, last: int, tree: DraftTree = EMPTY) -> torch.Tensor:
        """Read the last token and a tree: logits (N + 1, V). Nothing of it stays without `keep`."""
        self._cache.truncate(self._committed)
        rows = len(tree) + 1
        depth = torch.zeros(rows, dtype=torch.long)
        mask = None
        if len(tree) or self._window is not None:
            mask = torch.zeros(rows, rows, dtype=torch.bool)
            mask[:, 0] = True
        if len(tree) and mask is not None:
            depth[1:] = torch.from_numpy(depths(tree))
            mask[1:, 1:] = torch.from_numpy(ancestor_mask(tree))
        device_mask = None if mask is None else mask.to(self._model.device)
        return self._logits([last, *tree.tokens.tolist()], self._committed + depth, device_mask)

    @torch.inference_mode()
    def keep(self, path: Sequence[int]) -> None:
        """Commit the root and the nodes of `path`; drop the rest of the last tree."""
        self._cache.keep(self._committed, [0, *(node + 1 for node in path)])
        self._committed = self._cache.length

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens of the cache."""
        self._cache.truncate(length)
        self._committed = self._cache.length

    @torch.inference_mode()
    def snapshot(self) -> Snapshot:
        """A copy of keys and values."""
        self._cache.truncate(self._committed)
        parts = self._cache.copied()
        return Snapshot(self._committed, sum(part.nbytes for part in parts), parts)

    @torch.inference_mode()
    def restore(self, snapshot: Snapshot) -> None:
        """Make the cache what it was when the snapshot was taken."""
        self._cache.restore(snapshot.parts)
        self._committed = snapshot.length

    def _logits(
        self, tokens: list[int], positions: torch.Tensor, mask: torch.Tensor | None, last_only: bool = False
    ) -> torch.Tensor:
        """One forward pass over `tokens` (Q,) at `positions` (Q,); `mask` (Q, Q) or None for causal."""
        device = self._model.device
        positions = positions.to(device)
        out = self._model(
            input_ids=torch.tensor([tokens], device=device),
            position_ids=positions[None],
            attention_mask=self._masks(positions, mask),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1 if last_only else 0,
        )
        logits: torch.Tensor = out.logits[0]
        return logits

    def _masks(self, positions: torch.Tensor, mask: torch.Tensor | None) -> Any:
        """What the model takes as attention mask: one for all layers, or one per kind of layer."""
        full = None if mask is None else mask[None, None]
        if self._window is None:
            return full
        sliding = None if mask is None else self._windowed(positions, mask)[None, None]
        return {FULL: full, SLIDING: sliding} if self._kinds else sliding

    def _windowed(self, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Widen `mask` (Q, Q) to all columns (Q, S), without those at least a window before the row's position."""
        past = torch.arange(self._cache.length, device=mask.device)
        columns = torch.cat([past, positions])
        seen = torch.cat([mask.new_ones(len(positions), len(past)), mask], dim=1)
        return seen & (columns[None] > positions[:, None] - int(self._window or 0))
