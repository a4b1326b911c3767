"""The forward pass of a Llama-family model: what every architecture shares, and the parts that can be exchanged.

`LeanModel` is the path through the layers. What may be computed in several ways, on fused kernels for example, is
behind `Operations`; `EagerRows` computes it with plain PyTorch on any device. Knows no draft tree and no tokenizer.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu

from decoding.lean.cache import KeyValueCache
from decoding.lean.shape import LeanShape
from decoding.lean.weights import LeanWeights


class Operations(Protocol):
    """How one pass over R rows computes what is no matrix product."""

    def add_norm(self, stream: Tensor, update: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """`stream` (R, H) with `update` added, and that normalised (RMS) times `weight` (H,)."""

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """Rotate and cache what `qkv` (R, Q + 2 KV) holds, and attend: (R, Q)."""

    def gate(self, gate_up: Tensor) -> Tensor:
        """SiLU of the first half of `gate_up` (R, 2 I) times the second: (R, I)."""


class LeanModel:
    """Weights and the order in which they are applied."""

    def __init__(self, shape: LeanShape, weights: LeanWeights) -> None:
        self.shape = shape
        self.weights = weights

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weights.embed.device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are stored in, and the logits come in."""
        return self.weights.embed.dtype

    def logits(self, tokens: Tensor, operations: Operations, last_only: bool = False) -> Tensor:
        """Read `tokens` (R,): logits (R, V), or (1, V) of the last row only."""
        stream, update = embedding(tokens, self.weights.embed), None
        for index, layer in enumerate(self.weights.layers):
            stream, normed = operations.add_norm(stream, update, layer.input_norm)
            seen = operations.attend(index, linear(normed, layer.qkv, layer.qkv_bias))
            update = linear(seen, layer.out, layer.out_bias)
            stream, normed = operations.add_norm(stream, update, layer.mlp_norm)
            opened = operations.gate(linear(normed, layer.gate_up, layer.gate_up_bias))
            update = linear(opened, layer.down, layer.down_bias)
        if last_only:
            stream, update = stream[-1:], None if update is None else update[-1:]
        return linear(operations.add_norm(stream, update, self.weights.norm)[1], self.weights.head)


def rms_norm(rows: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`rows` (..., H) over the root of their mean square, times `weight` (H,); computed in float32 at least."""
    wide = rows.to(torch.promote_types(torch.float32, rows.dtype))
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(rows.dtype)


def rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`heads` (R, heads, D) turned by the angles of their positions; cos and sin (R, D) may be wider."""
    first, second = heads.chunk(2, dim=-1)
    halves = torch.cat([-second, first], dim=-1)
    return (heads * cos[:, None] + halves * sin[:, None]).to(heads.dtype)


class EagerRows:
    """`Operations` in plain PyTorch, for R rows that are written to the cache from column `start` on.

    positions (R,) where each row stands in the text
    mask      (R, R) True where a row sees a row of the same pass; every row sees all columns before `start`. None: each
              sees those before it and itself

    The mask is laid over the last columns of the scores only: queries times context is never masked.
    """

    def __init__(
        self, model: LeanModel, cache: KeyValueCache, start: int, positions: Tensor, mask: Tensor | None
    ) -> None:
        self._shape = model.shape
        self._weights = model.weights
        self._cache = cache
        self._start = start
        self._cos, self._sin = model.weights.cos[positions], model.weights.sin[positions]
        self._unseen = None if mask is None else ~mask

    def add_norm(self, stream: Tensor, update: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """As `Operations` says."""
        stream = stream if update is None else stream + update
        return stream, rms_norm(stream, weight, self._shape.norm_eps)

    def gate(self, gate_up: Tensor) -> Tensor:
        """As `Operations` says."""
        gate, up = gate_up.chunk(2, dim=-1)
        return silu(gate) * up

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """As `Operations` says."""
        shape, weights = self._shape, self._weights.layers[layer]
        rows = len(qkv)
        heads = qkv.view(rows, -1, shape.head_dim)
        query, key, value = torch.split(heads, [shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
        if weights.q_norm is not None and weights.k_norm is not None:
            query = rms_norm(query, weights.q_norm, shape.norm_eps)
            key = rms_norm(key, weights.k_norm, shape.norm_eps)
        query, key = rotated(query, self._cos, self._sin), rotated(key, self._cos, self._sin)
        self._cache.write(layer, self._start, key, value)
        if self._start == 0 and self._unseen is None:
            return _causal(query, key, value)
        keys, values = self._cache.store[layer, :, :, : self._start + rows]
        return _grouped(query, keys, values, self._unseen)


def _causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Every row sees itself and those before it: query (R, heads, D), key and value (R, KV, D) to (R, Q)."""
    grouped = query.shape[1] != key.shape[1]
    query, key, value = (part.transpose(0, 1)[None] for part in (query, key, value))
    out = scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=grouped)
    return out[0].transpose(0, 1).flatten(1)


def _grouped(query: Tensor, keys: Tensor, values: Tensor, unseen: Tensor | None) -> Tensor:
    """Query (R, heads, D) against a cache (KV, S, D) whose last R columns are the rows' own: (R, Q).

    The query heads of a group become rows of one batched product, so keys and values are never repeated. Prefix and
    tree share one softmax: their columns lie side by side, and splitting them would cost three more kernels.
    """
    rows, _, width = query.shape
    groups, columns = keys.shape[:2]
    folded = query.reshape(rows, groups, -1, width).permute(1, 2, 0, 3).reshape(groups, -1, width)
    scores = torch.bmm(folded * width**-0.5, keys.transpose(1, 2))
    if rows > 1:
        if unseen is None:
            unseen = torch.ones(rows, rows, dtype=torch.bool, device=query.device).triu(1)
        scores.view(groups, -1, rows, columns)[..., columns - rows :].masked_fill_(unseen, float("-inf"))
    wide = torch.promote_types(torch.float32, query.dtype)
    out = torch.bmm(torch.softmax(scores, dim=-1, dtype=wide).to(values.dtype), values)
    return out.view(groups, -1, rows, width).permute(2, 0, 1, 3).reshape(rows, -1)
