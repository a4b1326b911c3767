"""What a pass on a CPU works on: a model's sizes and packed weights, the memory of its rows, and the rows' places.

Compiled functions take these tuples apart when they are called, so they hold arrays and numbers only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any


class Sizes(NamedTuple):
    """A model's sizes; kind is the number format of its products."""

    kind: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    width: int
    intermediate: int
    qk_norm: bool
    epsilon: np.float32
    scale: np.float32


class Packed(NamedTuple):
    """Weights: matrices (layers, bytes) in panels, vectors (layers, n) in float32; `head` (bytes,), `norm` (H,).

    cos, sin  (C, D) float32
    """

    input_norm: Array
    qkv: Array
    qkv_bias: Array
    q_norm: Array
    k_norm: Array
    out: Array
    out_bias: Array
    mlp_norm: Array
    gate_up: Array
    gate_up_bias: Array
    down: Array
    down_bias: Array
    norm: Array
    head: Array
    cos: Array
    sin: Array


class Rows(NamedTuple):
    """What a pass works on, for R rows at most.

    state     (R, H) float32: the residual stream
    left      (R, bytes) rows in the products' format, and `units` (R,) what an int8 step is worth
    wide      (R, n) float32: what products give
    queries   (KV, R, G, D) in the cache's format
    attended  (R, KV, G, D) float32
    line      (threads, n) float32, and further memory of each thread's own for attention
    """

    state: Array
    left: Array
    units: Array
    wide: Array
    queries: Array
    attended: Array
    line: Array
    scores: Array
    weights: Array
    sums: Array
    totals: Array
    gathered: Array


class Pass(NamedTuple):
    """One pass: its rows' places in the text and in the draft tree.

    first      slots of the cache before it
    positions  (R,) rows of cos and sin
    paths      (R, most) the rows from the root to each row, at their depths
    depths     (R,)
    logits     (n, V) float32, for the last n rows
    """

    first: int
    positions: Array
    paths: Array
    depths: Array
    logits: Array
