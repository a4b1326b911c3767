"""Attention of a few rows over a long cache, as Triton kernels: split over the context, merged in a fixed order.

`tree_attention`: every row sees the whole prefix, and of the pass's own rows those that its ancestor bits name. The
query heads of a group are folded into one tile with the rows, so keys and values are read once per group. One more
split takes the tree's columns, so nothing is masked over the prefix.

`path_attention` is invariant to the rows: each row walks its own *logical* positions (the prefix, then its ancestors
in order) in blocks and splits that depend on nothing but the row's own logical length. A token's result is therefore
the same bit for bit wherever its ancestors lie in the cache, and whatever else is in the pass. It reads the prefix once
per row instead of once per tile (from the L2 cache mostly).

Lengths are read on the device: one launch fits every length, which is what a captured graph needs. Follows
flash-decoding (Dao et al. 2023). Not for float64.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from decoding.lean.packed import WORD

COLUMNS = 64  # of the cache per block
PATH_SPLITS = 16  # whatever the device: it decides the order of the sums
SMALLEST_TILE = 16
MOST_SPLITS = 64
LOG2_E = 1.4426950408889634


@triton.jit
def _fold(best, total, out, query, keys, values, slots, stored, seen, scale, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Add a block of columns to running maxima (M,), sums (M,) and values (M, D) of a softmax in powers of two."""
    width = tl.arange(0, PADDED)
    at = slots[:, None] * WIDTH + width[None, :]
    there = stored[:, None] & (width < WIDTH)[None, :]
    key = tl.load(keys + at, mask=there, other=0.0)
    value = tl.load(values + at, mask=there, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    scores = tl.where(seen, scores, float("-inf"))
    newest = tl.maximum(best, tl.max(scores, 1))
    base = tl.where(newest == float("-inf"), 0.0, newest)
    weights = tl.exp2(scores - base[:, None])
    fade = tl.exp2(best - base)
    out = tl.dot(weights.to(value.dtype), value, out * fade[:, None], input_precision="ieee")
    return newest, total * fade + tl.sum(weights, 1), out


@triton.jit
def _store(best, total, out, at, valid, bests, totals, outs, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Write the partial result of one split; `at` (M,) is its place for each row and head."""
    width = tl.arange(0, PADDED)
    tl.store(bests + at, best, mask=valid)
    tl.store(totals + at, total, mask=valid)
    tl.store(outs + at[:, None] * WIDTH + width[None, :], out, mask=valid[:, None] & (width < WIDTH)[None, :])


@triton.jit
def _tree_split(
    query, keys, values, header, bits, bests, totals, outs, rows, head_stride, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    TILE: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Program (tile, key head, split): splits 0 to SPLITS - 2 share the prefix, the last one takes the tree."""
    kv, split = tl.program_id(1), tl.program_id(2)
    folded = tl.program_id(0) * TILE + tl.arange(0, TILE)
    row = folded // GROUP
    head = kv * GROUP + folded % GROUP
    valid = row < rows
    width = tl.arange(0, PADDED)
    places = (row * HEADS + head)[:, None] * WIDTH + width[None, :]
    tile = tl.load(query + places, mask=valid[:, None] & (width < WIDTH)[None, :], other=0.0)
    length = tl.load(header)
    keys += kv * head_stride
    values += kv * head_stride
    column = tl.arange(0, BLOCK)
    best = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    out = tl.zeros((TILE, PADDED), tl.float32)
    if split < SPLITS - 1:
        share = tl.cdiv(tl.cdiv(length, BLOCK), SPLITS - 1) * BLOCK
        end = tl.minimum(length, (split + 1) * share)
        for start in range(split * share, end, BLOCK):
            slots = start + column
            stored = slots < end
            best, total, out = _fold(
                best, total, out, tile, keys, values, slots, stored, stored[None, :], scale, WIDTH, PADDED
            )
    else:
        for word in range(WORDS):
            seen = tl.load(bits + row * WORDS + word, mask=valid, other=0)
            stored = word * BLOCK + column < rows
            named = ((seen[:, None] >> column[None, :].to(tl.int64)) & 1) != 0
            slots = length + word * BLOCK + column
            best, total, out = _fold(
                best, total, out, tile, keys, values, slots, stored, named & stored[None, :], scale, WIDTH, PADDED
            )
    _store(best, total, out, (row * HEADS + head) * SPLITS + split, valid, bests, totals, outs, WIDTH, PADDED)


@triton.jit(do_not_specialize=["path_width"])  # one compiled kernel, or the order of its sums might differ
def _path_split(
    query, keys, values, header, depths, paths, bests, totals, outs, path_width, head_stride, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    TILE: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Program (row, key head, split): one row's logical positions, with the query heads of a group as the tile."""
    row, kv, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    member = tl.arange(0, TILE)
    valid = member < GROUP
    head = kv * GROUP + member
    width = tl.arange(0, PADDED)
    places = (row * HEADS + head)[:, None] * WIDTH + width[None, :]
    tile = tl.load(query + places, mask=valid[:, None] & (width < WIDTH)[None, :], other=0.0)
    length = tl.load(header)
    depth = tl.load(depths + row)
    text = tl.where(depth < 0, 0, length + depth + 1)
    keys += kv * head_stride
    values += kv * head_stride
    column = tl.arange(0, BLOCK)
    best = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    out = tl.zeros((TILE, PADDED), tl.float32)
    share = tl.cdiv(tl.cdiv(text, BLOCK), SPLITS) * BLOCK
    end = tl.minimum(text, (split + 1) * share)
    for start in range(split * share, end, BLOCK):
        logical = start + column
        stored = logical < end
        drafted = logical >= length
        offset = tl.load(paths + row * path_width + logical - length, mask=stored & drafted, other=0)
        slots = tl.where(drafted, length + offset, logical)
        best, total, out = _fold(
            best, total, out, tile, keys, values, slots, stored, stored[None, :], scale, WIDTH, PADDED
        )
    _store(best, total, out, (row * HEADS + head) * SPLITS + split, valid, bests, totals, outs, WIDTH, PADDED)


@triton.jit
def _merge(
    bests, totals, outs, result, WIDTH: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr
):  # fmt: skip
    """Program (row and head): all splits together, by their maxima and sums. A row that saw nothing becomes zero."""
    at = tl.program_id(0)
    split = at * SPLITS + tl.arange(0, SPLITS)
    width = tl.arange(0, PADDED)
    best = tl.load(bests + split)
    highest = tl.max(best, 0)
    share = tl.exp2(best - tl.where(highest == float("-inf"), 0.0, highest))
    total = tl.sum(share * tl.load(totals + split), 0)
    inside = width < WIDTH
    partial = tl.load(outs + split[:, None] * WIDTH + width[None, :], mask=inside[None, :], other=0.0)
    out = tl.sum(share[:, None] * partial, 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(result + at * WIDTH + width, out.to(result.dtype.element_ty), mask=inside)


def tree_splits(rows: int, heads: int, kv_heads: int, dtype: torch.dtype, multiprocessors: int) -> int:
    """Into how many parts, a power of two, to cut the context so that some two programs run per multiprocessor."""
    programs = kv_heads * -(-rows * (heads // kv_heads) // _largest_tile(dtype))
    wanted = max(2, min(MOST_SPLITS, 2 * multiprocessors // programs))
    return 1 << (wanted.bit_length() - 1)


def tree_attention(query: Tensor, keys: Tensor, values: Tensor, header: Tensor, bits: Tensor, splits: int) -> Tensor:
    """Query (R, heads, D) over keys and values (KV, capacity, D), the rows' own behind the prefix: (R, Q).

    header  (2,) its first number is the length of the prefix, on the device
    bits    (R, words) each row's ancestors and itself among the R rows
    splits  parts of the context, one of them the tree: a power of two from 2 on
    """
    rows, heads, width = query.shape
    group = heads // len(keys)
    padded = max(16, triton.next_power_of_2(width))
    tile = min(_largest_tile(query.dtype), max(SMALLEST_TILE, triton.next_power_of_2(rows * group)))
    partial = _partials(query, splits)
    grid = (triton.cdiv(rows * group, tile), len(keys), splits)
    _tree_split[grid](
        query, keys, values, header, bits, *partial, rows, keys.stride(0), width**-0.5 * LOG2_E,
        heads, group, width, padded, tile, WORD, splits, bits.shape[1], num_stages=_stages(query),
    )  # fmt: skip
    return _merged(query, partial, padded, splits)


def path_attention(
    query: Tensor, keys: Tensor, values: Tensor, header: Tensor, depths: Tensor, paths: Tensor
) -> Tensor:
    """As `tree_attention`, but row-invariant: depths (R,), -1 for rows without a token; paths (R, longest)."""
    rows, heads, width = query.shape
    group = heads // len(keys)
    padded = max(16, triton.next_power_of_2(width))
    tile = max(SMALLEST_TILE, triton.next_power_of_2(group))
    partial = _partials(query, PATH_SPLITS)
    _path_split[(rows, len(keys), PATH_SPLITS)](
        query, keys, values, header, depths, paths, *partial, paths.shape[1], keys.stride(0), width**-0.5 * LOG2_E,
        heads, group, width, padded, tile, COLUMNS, PATH_SPLITS, num_stages=_stages(query),
    )  # fmt: skip
    return _merged(query, partial, padded, PATH_SPLITS)


def _partials(query: Tensor, splits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Maxima and sums (R, heads, splits), values (R, heads, splits, D), in float32."""
    rows, heads, width = query.shape
    best = torch.empty(rows, heads, splits, dtype=torch.float32, device=query.device)
    return best, torch.empty_like(best), torch.empty(rows, heads, splits, width, dtype=best.dtype, device=best.device)


def _merged(query: Tensor, partial: tuple[Tensor, Tensor, Tensor], padded: int, splits: int) -> Tensor:
    rows, heads, width = query.shape
    result = torch.empty(rows, heads * width, dtype=query.dtype, device=query.device)
    _merge[(rows * heads,)](*partial, result, width, padded, splits)
    return result


def _largest_tile(dtype: torch.dtype) -> int:
    """Most rows and heads in a program. Float32 has no tensor cores here, and a tile of 64 rows no registers."""
    return 64 if dtype.itemsize == 2 else 16


def _stages(query: Tensor) -> int:
    """Blocks in flight: as many as fit into a multiprocessor's shared memory."""
    return 3 if query.element_size() == 2 else 2
