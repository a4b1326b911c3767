"""Attention on a CPU over a cache whose keys and values lie as the tiles of `cpu_tiles` want them.

Every row sums over *logical* positions in their order: the slots of the cache up to the text's end, then the row's own
path through the draft tree. Where a path lies scattered, its values are first brought together. A row's bits are
therefore those of plain decoding, wherever its ancestors lie and whatever else is computed with it.
"""

from __future__ import annotations

import numpy as np

from decoding.lean.cpu_primitives import largest, weigh_bf16, weigh_f32
from decoding.lean.cpu_rows import LOG2_E, store_bf16, store_floats
from decoding.lean.cpu_tiles import BF16, COLUMNS, LANES, PANEL_STEP, multiply
from indexes.compiled import compiled

_ONE, _NOTHING = np.float32(1.0), np.float32(-np.inf)


@compiled()
def store_key(row, slot, keys) -> None:
    """Put a key (D,) into its panel of `keys` (S / 32, D / g, 32, g)."""
    panel = keys[slot // COLUMNS]
    group = keys.shape[3]
    for at in range(len(row)):
        panel[at // group, slot % COLUMNS, at % group] = row[at]


@compiled()
def store_value(row, slot, last, values) -> None:
    """Put a value (D,) into `values` (S / g, D, g). After the `last` one of a pass its group is cleared, for zero times
    what an earlier draft left there need not be zero."""
    group = values.shape[2]
    for at in range(len(row)):
        values[slot // group, at, slot % group] = row[at]
        for later in range(slot % group + 1, group if last else 0):
            values[slot // group, at, later] = 0


@compiled()
def move_slots(keys, values, start, kept) -> None:
    """Move the slots start + kept[i] (ascending) to start + i, in all layers and heads.

    keys (L, KV, S / 32, D / g, 32, g), values (L, KV, S / g, D, g)
    """
    group = values.shape[4]
    for at in range(len(kept)):
        old, new = start + kept[at], start + at
        if old == new:
            continue
        for layer in range(keys.shape[0]):
            for head in range(keys.shape[1]):
                panels, pairs = keys[layer, head], values[layer, head]
                panels[new // COLUMNS, :, new % COLUMNS] = panels[old // COLUMNS, :, old % COLUMNS]
                pairs[new // group, :, new % group] = pairs[old // group, :, old % group]


@compiled()
def _weigh(scores, first, path, depth, scale, weights):
    """Turn a row's scores by slot into weights by logical position, which are zero after its end; returns their sum.

    first  slots before the tree, all of which the row sees
    path   the tree's rows from the root to this one, at their depths
    """
    length = first + depth + 1
    if path[depth] != depth:
        for at in range(depth + 1):
            scores[first + at] = scores[first + path[at]]
    vectors = (length + LANES - 1) // LANES
    scores[length : vectors * LANES] = _NOTHING
    most = largest(scores.ctypes.data, vectors)
    factor = np.float32(scale) * LOG2_E
    weights[vectors * LANES :] = 0
    if weights.itemsize == 2:
        return weigh_bf16(scores.ctypes.data, vectors, most, factor, weights.ctypes.data)
    return weigh_f32(scores.ctypes.data, vectors, most, factor, weights.ctypes.data)


@compiled()
def store(source, target) -> None:
    """Copy float32 numbers into the format of `target`: float32 or the bits of bfloat16."""
    if target.itemsize == 2:
        store_bf16(source, target)
    else:
        store_floats(source, target)


@compiled()
def _add_values(kind, rows, weights, stride, values, steps, sums, onto) -> None:
    """Weights times values (steps, D, g), in `sums` (rows, D) or `onto` them; `weights` is an address."""
    width = values.shape[1]
    for column in range(0, width, COLUMNS):
        multiply(
            kind, rows, weights, stride, 0, values.ctypes.data + 4 * column, 4 * width, steps,
            sums.ctypes.data + 4 * column, 4 * width, onto,
        )  # fmt: skip


@compiled(error_model="numpy")
def attend(queries, keys, values, first, tokens, paths, depths, at_hand, scale, out) -> None:
    """Some tokens' query heads of one group, over the cache.

    queries   (N, G, D) in the cache's format
    keys      (S / 32, D / g, 32, g)
    values    (S / g, D, g)
    first     slots before the tree
    tokens    (start, end) the N tokens' rows in the tree
    paths     (R, most) the rows from the root to each row, at their depths
    depths    (R,)
    at_hand   a thread's own memory: scores, weights, sums, their totals, gathered values
    out       (N, G, D) float32
    """
    scores, weights, sums, totals, gathered = at_hand
    start, end = tokens
    kind = BF16 if keys.itemsize == 2 else 0
    group, width, heads = values.shape[2], values.shape[1], queries.shape[1]
    rows, extent = (end - start) * heads, first + end
    in_place = True
    for token in range(start, end):
        in_place = in_place and paths[token, depths[token]] == depths[token]
    if not in_place:
        extent = first + len(depths)
    panels = (extent + COLUMNS - 1) // COLUMNS
    for panel in range(panels):
        multiply(
            kind, rows, queries.ctypes.data, queries.itemsize * width, 0, keys[panel].ctypes.data, PANEL_STEP,
            width // group, scores.ctypes.data + 4 * panel * COLUMNS, 4 * scores.shape[1], 0,
        )  # fmt: skip
    used = panels * COLUMNS
    for row in range(rows):
        token = start + row // heads
        totals[row] = _weigh(scores[row, :used], first, paths[token], depths[token], scale, weights[row, :used])
    stride = weights.itemsize * weights.shape[1]
    common = (extent + group - 1) // group if in_place else first // group
    _add_values(kind, rows, weights.ctypes.data, stride, values, common, sums, 0)
    for token in range(start, start if in_place else end):
        row = (token - start) * heads
        steps = (first + depths[token]) // group + 1 - common
        for at in range(steps * group):
            slot = common * group + at
            ancestor = slot - first
            if ancestor > depths[token]:
                gathered[at // group, :, at % group] = 0
                continue
            if ancestor >= 0:
                slot = first + paths[token, ancestor]
            gathered[at // group, :, at % group] = values[slot // group, :, slot % group]
        _add_values(
            kind, heads, weights[row].ctypes.data + weights.itemsize * common * group, stride, gathered, steps,
            sums[row:], 1,
        )  # fmt: skip
    for row in range(rows):
        share = _ONE / totals[row]
        for at in range(width):
            out[row // heads, row % heads, at] = sums[row, at] * share
