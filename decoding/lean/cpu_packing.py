"""Weights in the layout and number format of the CPU's tiles: panels of 32 columns, groups of 32 bits.

int8 is symmetric, one scale per output column; the rows that it is multiplied with are rounded when they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from decoding.lean.cpu_layout import Packed
from decoding.lean.cpu_tiles import AFTER_PANEL, BF16, COLUMNS, F32, GROUP, INT8, LANES, PANEL_STEP
from decoding.lean.shape import LeanShape
from decoding.lean.weights import LayerWeights, LeanWeights
from indexes.errors import UnsupportedModelError

LINE = 64  # bytes that a vector is aligned to


def check_packable(shape: LeanShape) -> None:
    """Raises UnsupportedModelError for sizes that do not fill vectors."""
    for name, value, unit in (
        ("hidden_size", shape.hidden, COLUMNS),
        ("head_dim", shape.head_dim, COLUMNS),
        ("intermediate_size", shape.intermediate, LANES),
    ):
        if value % unit:
            raise UnsupportedModelError(f"the CPU's kernels need a {name} that is a multiple of {unit}, not {value}")


def aligned(dimensions: Sequence[int], kind: Any) -> Any:
    """An array of zeros that begins on a cache line."""
    count = int(np.prod(dimensions)) * np.dtype(kind).itemsize
    memory = np.zeros(count + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + count].view(kind).reshape(tuple(dimensions))


def panel_bytes(kind: int, columns: int, depth: int) -> int:
    """Bytes of a packed matrix (columns, depth)."""
    each = depth // GROUP[kind] * PANEL_STEP + (AFTER_PANEL if kind == INT8 else 0)
    return -(-columns // COLUMNS) * each


def pack(kind: int, matrix: torch.Tensor, into: Any) -> None:
    """Write a matrix (N, K) as panels into `into` (bytes,), its rows being the columns of a product."""
    columns, depth = matrix.shape
    panels, group = -(-columns // COLUMNS), GROUP[kind]
    wide = matrix.float()
    wide = torch.nn.functional.pad(wide, (0, 0, 0, panels * COLUMNS - columns))
    target = into.reshape(panels, -1)
    body = depth // group * PANEL_STEP
    if kind == INT8:
        scales = wide.abs().amax(dim=1) / 127
        wide = torch.round(wide / scales.clamp_min(1e-30)[:, None])
        offset = 128 * wide.sum(dim=1).to(torch.int32)
        target[:, body : body + 4 * COLUMNS] = scales.numpy().view(np.uint8).reshape(panels, -1)
        target[:, body + 4 * COLUMNS :] = offset.numpy().view(np.uint8).reshape(panels, -1)
    number = {F32: torch.float32, BF16: torch.bfloat16, INT8: torch.int8}[kind]
    grouped = wide.to(number).view(panels, COLUMNS, depth // group, group).transpose(1, 2).contiguous()
    target[:, :body] = grouped.view(torch.uint8).view(panels, -1).numpy()


def pack_weights(shape: LeanShape, weights: LeanWeights, kind: int) -> Packed:
    """All weights of a model, ready for `cpu_step`. Raises UnsupportedModelError for sizes that do not fit."""
    check_packable(shape)
    layers = weights.layers

    def matrices(get: Callable[[LayerWeights], torch.Tensor]) -> Any:
        columns, depth = get(layers[0]).shape
        packed = aligned((len(layers), panel_bytes(kind, columns, depth)), np.uint8)
        for layer, into in zip(layers, packed, strict=True):
            pack(kind, get(layer), into)
        return packed

    def vectors(get: Callable[[LayerWeights], torch.Tensor | None], width: int) -> Any:
        found = [get(layer) for layer in layers]
        if found[0] is None:
            return aligned((len(layers), 0), np.float32)
        padded = aligned((len(layers), -(-width // COLUMNS) * COLUMNS), np.float32)
        for row, vector in zip(padded, found, strict=True):
            assert vector is not None
            row[:width] = vector.float().numpy()
        return padded

    head = aligned((panel_bytes(kind, shape.vocabulary, shape.hidden),), np.uint8)
    pack(kind, weights.head, head)
    return Packed(
        input_norm=vectors(lambda layer: layer.input_norm, shape.hidden),
        qkv=matrices(lambda layer: layer.qkv),
        qkv_bias=vectors(lambda layer: layer.qkv_bias, shape.query_width + 2 * shape.kv_width),
        q_norm=vectors(lambda layer: layer.q_norm, shape.head_dim),
        k_norm=vectors(lambda layer: layer.k_norm, shape.head_dim),
        out=matrices(lambda layer: layer.out),
        out_bias=vectors(lambda layer: layer.out_bias, shape.hidden),
        mlp_norm=vectors(lambda layer: layer.mlp_norm, shape.hidden),
        gate_up=matrices(lambda layer: layer.gate_up),
        gate_up_bias=vectors(lambda layer: layer.gate_up_bias, 2 * shape.intermediate),
        down=matrices(lambda layer: layer.down),
        down_bias=vectors(lambda layer: layer.down_bias, shape.hidden),
        norm=weights.norm.float().numpy().copy(),
        head=head,
        cos=weights.cos.float().numpy().copy(),
        sin=weights.sin.float().numpy().copy(),
    )
