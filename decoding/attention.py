"""Tree attention as a transformers attention function, for any model that uses their attention interface.

Three cases share it: a prefill (no mask, causal), a plain step (no mask, one query row) and a draft tree (a
mask over the last columns only, since every node sees the whole cache before the tree). The query heads of
a group are folded into the rows of one batched product, so keys and values are never repeated; on the CPU
this is several times faster than scaled_dot_product_attention for few query rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from indexes.errors import UnsupportedModelError

NAME = "quotewright_tree"


def tree_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **__: Any,
) -> tuple[torch.Tensor, None]:
    """Attend `query` (1, H, Q, D) to `key` and `value` (1, KV, S, D): output (1, Q, H, D).

    attention_mask  None, or bool (1, 1, Q, M) with M <= S: True where a row may attend to the last M columns.
    Raises UnsupportedModelError for attention sinks (s_aux) and attention to later tokens, which are not computed here.
    """
    if s_aux is not None:
        raise UnsupportedModelError("this model's attention sinks (s_aux) are not supported; choose another model")
    if not getattr(module, "is_causal", True):
        raise UnsupportedModelError("this model attends to later tokens too; choose one that reads from left to right")
    _, heads, rows, width = query.shape
    groups, columns = key.shape[1], key.shape[2]
    scale = width**-0.5 if scaling is None else scaling
    if rows > 1 and attention_mask is None and softcap is None:
        out = scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=groups != heads)
        return out.transpose(1, 2).contiguous(), None
    folded = query.reshape(groups, heads // groups * rows, width) * scale
    scores = torch.bmm(folded, key[0].transpose(1, 2))
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.view(groups, heads // groups, rows, columns)
    if rows > 1 and attention_mask is None:
        attention_mask = torch.ones(rows, rows, dtype=torch.bool, device=query.device).tril()[None, None]
    if attention_mask is not None:
        tail = scores[..., columns - attention_mask.shape[-1] :]
        tail.masked_fill_(~attention_mask[0], float("-inf"))
    wide = torch.promote_types(torch.float32, query.dtype)
    weights = torch.softmax(scores.view(groups, -1, columns), dim=-1, dtype=wide).to(value.dtype)
    out = torch.bmm(weights, value[0]).view(1, heads, rows, value.shape[-1])
    return out.transpose(1, 2).contiguous(), None


def register() -> str:
    """Make the function known to transformers; returns the name for `attn_implementation`."""
    AttentionInterface.register(NAME, tree_attention)
    return NAME
