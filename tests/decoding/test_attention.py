"""Tree attention against the formula, row by row."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.attention import tree_attention
from indexes.errors import UnsupportedModelError

MODULE = torch.nn.Module()


def by_formula(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: torch.Tensor, scale: float, softcap: float | None
) -> torch.Tensor:
    """softmax(scale * q k, capped) v, one head and one row at a time: (1, Q, H, D)."""
    heads, groups = query.shape[1], key.shape[1]
    out = query.new_empty(1, query.shape[2], heads, value.shape[3])
    for head in range(heads):
        group = head * groups // heads
        for row in range(query.shape[2]):
            scores = scale * (key[0, group] @ query[0, head, row])
            if softcap is not None:
                scores = softcap * torch.tanh(scores / softcap)
            out[0, row, head] = torch.softmax(scores[seen[row]], 0) @ value[0, group][seen[row]]
    return out


@given(
    rows=st.integers(1, 5),
    past=st.integers(0, 6),
    groups=st.sampled_from([1, 2]),
    per_group=st.sampled_from([1, 3]),
    masked=st.sampled_from(["none", "tree", "all columns"]),
    softcap=st.sampled_from([None, 0.5]),
    scaling=st.sampled_from([None, 0.3]),
    seed=st.integers(0, 99),
)
def test_every_row_attends_to_what_it_may_see(
    rows: int,
    past: int,
    groups: int,
    per_group: int,
    masked: str,
    softcap: float | None,
    scaling: float | None,
    seed: int,
) -> None:
    past = 0 if masked == "none" and rows > 1 else past  # a pass over several tokens without a mask is a prefill
    chance = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(1, heads, length, width, generator=chance, dtype=torch.float64)
        for heads, length, width in (
            (groups * per_group, rows, 4),
            (groups, past + rows, 4),
            (groups, past + rows, 6),
        )
    )
    seen = torch.cat([torch.ones(rows, past), torch.ones(rows, rows).tril()], 1).bool()
    mask = None
    if masked != "none":
        drop = torch.rand(rows, past + rows, generator=chance) < 0.4
        drop[:, : past if masked == "tree" else 0] = False
        seen &= ~drop
        seen[range(rows), range(past, past + rows)] = True
        mask = seen[None, None, :, past if masked == "tree" else 0 :]
    out, _ = tree_attention(MODULE, query, key, value, mask, scaling=scaling, softcap=softcap)
    scale = 1 / math.sqrt(4) if scaling is None else scaling
    torch.testing.assert_close(out, by_formula(query, key, value, seen, scale, softcap))


def test_attention_sinks_are_refused() -> None:
    one = torch.ones(1, 1, 1, 1)
    with pytest.raises(UnsupportedModelError, match="attention sinks"):
        tree_attention(MODULE, one, one, one, None, s_aux=torch.ones(1))


def test_attention_to_later_tokens_is_refused() -> None:
    one, module = torch.ones(1, 1, 1, 1), torch.nn.Module()
    module.is_causal = False  # type: ignore[assignment]
    with pytest.raises(UnsupportedModelError, match="later tokens"):
        tree_attention(module, one, one, one, None)
