"""What stands between the matrix products of a step, as Triton kernels: one launch each, a program per row.

A step of small models is bound by the number of kernels, so each of these does what takes PyTorch several. They compute
in float32 and round where `decoding.lean.torch_model` rounds. No row sees another one. Not for float64.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _add_norm(
    stream, update, weight, summed, normed, eps, WIDTH: tl.constexpr, PADDED: tl.constexpr, ADD: tl.constexpr
):
    """Program (row): `summed` = stream + update; `normed` = that over its root mean square, times the weight."""
    at = tl.arange(0, PADDED)
    inside = at < WIDTH
    place = tl.program_id(0) * WIDTH + at
    row = tl.load(stream + place, mask=inside, other=0.0)
    if ADD:
        row = (row.to(tl.float32) + tl.load(update + place, mask=inside, other=0.0).to(tl.float32)).to(row.dtype)
        tl.store(summed + place, row, mask=inside)
    wide = row.to(tl.float32)
    wide *= tl.rsqrt(tl.sum(wide * wide, 0) / WIDTH + eps)
    scaled = wide.to(row.dtype).to(tl.float32) * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(normed + place, scaled.to(row.dtype), mask=inside)


@triton.jit
def _gate(gate_up, result, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """Program (row, part): SiLU of the first half times the second."""
    row = tl.program_id(0)
    at = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    inside = at < WIDTH
    gate = tl.load(gate_up + row * 2 * WIDTH + at, mask=inside, other=0.0)
    up = tl.load(gate_up + row * 2 * WIDTH + WIDTH + at, mask=inside, other=0.0)
    wide = gate.to(tl.float32)
    opened = (wide / (1.0 + tl.exp(-wide))).to(gate.dtype).to(tl.float32)
    tl.store(result + row * WIDTH + at, (opened * up.to(tl.float32)).to(gate.dtype), mask=inside)


@triton.jit
def _rotate(
    qkv, header, depths, cos, sin, q_norm, k_norm, query, keys, values, head_stride, last_position, eps,
    HEADS: tl.constexpr, KV: tl.constexpr, WIDTH: tl.constexpr, HALF: tl.constexpr, PADDED: tl.constexpr,
    NORM: tl.constexpr,
):  # fmt: skip
    """Program (row, head): normalise and rotate a query or a key; keys and values go to their column of the cache."""
    row, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(header)
    column = length + tl.load(header + 1) + row
    at = tl.arange(0, PADDED)
    inside = at < HALF
    source = qkv + (row * (HEADS + 2 * KV) + head) * WIDTH + at
    first = tl.load(source, mask=inside, other=0.0)
    second = tl.load(source + HALF, mask=inside, other=0.0)
    if head >= HEADS + KV:
        target = values + (head - HEADS - KV) * head_stride + column * WIDTH + at
        tl.store(target, first, mask=inside)
        tl.store(target + HALF, second, mask=inside)
    else:
        left, right = first.to(tl.float32), second.to(tl.float32)
        if NORM:
            scale = tl.rsqrt((tl.sum(left * left, 0) + tl.sum(right * right, 0)) / WIDTH + eps)
            if head < HEADS:
                norm_left = tl.load(q_norm + at, mask=inside, other=0.0)
                norm_right = tl.load(q_norm + HALF + at, mask=inside, other=0.0)
            else:
                norm_left = tl.load(k_norm + at, mask=inside, other=0.0)
                norm_right = tl.load(k_norm + HALF + at, mask=inside, other=0.0)
            left = (left * scale).to(first.dtype).to(tl.float32) * norm_left.to(tl.float32)
            right = (right * scale).to(first.dtype).to(tl.float32) * norm_right.to(tl.float32)
            left, right = left.to(first.dtype).to(tl.float32), right.to(first.dtype).to(tl.float32)
        depth = tl.load(depths + row)
        position = tl.minimum(length + tl.maximum(depth, 0), last_position)
        cosine = tl.load(cos + position * WIDTH + at, mask=inside, other=0.0)  # both halves turn by the same angles
        sine = tl.load(sin + position * WIDTH + at, mask=inside, other=0.0)
        turned_left = (left * cosine - right * sine).to(first.dtype)
        turned_right = (right * cosine + left * sine).to(first.dtype)
        if head < HEADS:
            target = query + (row * HEADS + head) * WIDTH + at
        else:
            target = keys + (head - HEADS) * head_stride + column * WIDTH + at
        tl.store(target, turned_left, mask=inside)
        tl.store(target + HALF, turned_right, mask=inside)


def add_norm(stream: Tensor, update: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`stream` (R, H) with `update` added, and that normalised (RMS) times `weight` (H,)."""
    rows, width = stream.shape
    summed = stream if update is None else torch.empty_like(stream)
    normed = torch.empty_like(stream)
    added = stream if update is None else update
    padded = triton.next_power_of_2(width)
    _add_norm[(rows,)](stream, added, weight, summed, normed, eps, width, padded, update is not None, num_warps=8)
    return summed, normed


def gate(gate_up: Tensor) -> Tensor:
    """SiLU of the first half of `gate_up` (R, 2 I) times the second: (R, I)."""
    rows, width = len(gate_up), gate_up.shape[1] // 2
    result = torch.empty(rows, width, dtype=gate_up.dtype, device=gate_up.device)
    _gate[(rows, triton.cdiv(width, BLOCK))](gate_up, result, width, BLOCK)
    return result


def rotate(
    qkv: Tensor,
    header: Tensor,
    depths: Tensor,
    tables: tuple[Tensor, Tensor],
    norms: tuple[Tensor | None, Tensor | None],
    cached: tuple[Tensor, Tensor],
    heads: int,
    eps: float,
) -> Tensor:
    """The rotated queries (R, heads, D) of `qkv` (R, Q + 2 KV); its keys and values are written to the cache.

    header  (2,) length of the prefix, and which row of the tree is the first one here; on the device
    depths  (R,) steps from the root; rows past the last position of the tables stand at it
    tables  cos and sin (C, D); norms: of queries and keys (D,), or None twice; cached: keys, values (KV, capacity, D)
    """
    (cos, sin), (keys, values) = tables, cached
    q_norm, k_norm = (cos if norm is None else norm for norm in norms)
    rows, width = len(qkv), keys.shape[2]
    query = torch.empty(rows, heads, width, dtype=qkv.dtype, device=qkv.device)
    _rotate[(rows, heads + 2 * len(keys))](
        qkv, header, depths, cos, sin, q_norm, k_norm, query, keys, values, keys.stride(0), len(cos) - 1, eps,
        heads, len(keys), width, width // 2, triton.next_power_of_2(width // 2), norms[0] is not None, num_warps=1,
    )  # fmt: skip
    return query
