"""One forward pass on a CPU as one compiled function, run by several threads at once.

The pass is a row of stages (norm, product, rotation, attention, ...), each cut into tasks. Threads take tasks by
counting up, and wait at a stage's end only for tasks that another one has begun: a thread that the system runs late, or
not at all, delays nobody. Who computes a task, and how many rows a pass has, changes no bit of any result.
"""

from __future__ import annotations

import numpy as np

from decoding.lean.cpu_attention import attend, store, store_key, store_value
from decoding.lean.cpu_primitives import fetch, fetch_add, give_way, relax
from decoding.lean.cpu_rows import activated, normed, rotated, store_bf16, store_floats, store_int8
from decoding.lean.cpu_tiles import AFTER_PANEL, BF16, COLUMNS, GROUP, INT8, MOST_ROWS, PANEL_STEP, multiply
from indexes.compiled import compiled

STAGES = 10  # per layer; then one norm and the head
(NORM, QKV, ROTATE, ATTEND, GATHER, OUT, MLP_NORM, GATE_UP, ACTIVATE, DOWN) = range(STAGES)
LAST_STAGES = 2
TASKS_PER_THREAD = 4  # of a product: more than one, so that threads finish together
ROWS_PER_TASK = 8
COUNTER = 16  # int64s per stage: taken at 0, done at 8, so that they lie on lines of their own
PATIENCE = 2000  # turns of a waiting loop before the thread gives way
_PAIR, _FOUR = GROUP[BF16], GROUP[INT8]


@compiled()
def _put(kind, line, row, left, units) -> None:
    """Store a float32 line as a row of the products' format."""
    if kind == INT8:
        units[row] = store_int8(line, left[row, : len(line)])
    elif kind == BF16:
        store_bf16(line, left[row, : _PAIR * len(line)].view(np.uint16))
    else:
        store_floats(line, left[row, : _FOUR * len(line)].view(np.float32))


@compiled()
def _product(kind, rows, left, units, depth, packed, biases, part, parts, out, onto) -> None:
    """The rows times a part of the panels in `packed`, plus biases if any, into `out` (R, n), or added `onto` it."""
    group = _FOUR if kind == INT8 else (_PAIR if kind == BF16 else 1)
    steps = depth // group
    bytes_each = steps * PANEL_STEP + (AFTER_PANEL if kind == INT8 else 0)
    panels = len(packed) // bytes_each
    for panel in range(panels * part // parts, panels * (part + 1) // parts):
        columns = out[:rows, panel * COLUMNS : (panel + 1) * COLUMNS]
        if len(biases):
            bias = biases[panel * COLUMNS : (panel + 1) * COLUMNS]
            for row in range(rows):
                columns[row] = columns[row] + bias if onto else bias
        multiply(
            kind, rows, left.ctypes.data, left.shape[1], units.ctypes.data, packed.ctypes.data + panel * bytes_each,
            PANEL_STEP, steps, columns.ctypes.data, 4 * out.shape[1], onto or len(biases) > 0,
        )  # fmt: skip


@compiled()
def _rotate(sizes, weights, rows, cache, layer, now, row, line) -> None:
    """Rotate a row's queries and keys, and put its keys and values into the cache."""
    keys, values = cache
    width, share = sizes.width, sizes.heads // sizes.kv_heads
    cos, sin = weights.cos[now.positions[row]], weights.sin[now.positions[row]]
    slot = now.first + row
    short = line[:width]
    turned = line[width : 2 * width]
    number = np.empty(width, keys.dtype)
    for head in range(sizes.heads + 2 * sizes.kv_heads):
        source = rows.wide[row, head * width : (head + 1) * width]
        if head >= sizes.heads + sizes.kv_heads:
            store(source, number)
            last = row == len(now.depths) - 1
            store_value(number, slot, last, values[layer, head - sizes.heads - sizes.kv_heads])
            continue
        query = head < sizes.heads
        if sizes.qk_norm:
            normed(source, weights.q_norm[layer] if query else weights.k_norm[layer], sizes.epsilon, short)
            rotated(short, cos, sin, turned)
        else:
            rotated(source, cos, sin, turned)
        if query:
            store(turned, rows.queries[head // share, row, head % share])
        else:
            store(turned, number)
            store_key(number, slot, keys[layer, head - sizes.heads])


@compiled()
def _attend(sizes, rows, cache, layer, now, task, thread) -> None:
    """One key head with as many rows as make a tile."""
    keys, values = cache
    count = len(now.depths)
    each = max(1, MOST_ROWS * sizes.kv_heads // sizes.heads)
    head, start = task % sizes.kv_heads, task // sizes.kv_heads * each
    end = min(start + each, count)
    at_hand = rows.scores[thread], rows.weights[thread], rows.sums[thread], rows.totals[thread], rows.gathered[thread]
    attend(
        rows.queries[head, start:end], keys[layer, head], values[layer, head], now.first, (start, end), now.paths,
        now.depths, at_hand, sizes.scale, rows.attended[start:end, head],
    )  # fmt: skip


@compiled()
def _rows_of(sizes, weights, rows, layer, stage, row, line) -> None:
    """The stages that work on one row: what they leave is the left side of the next product."""
    kind, hidden, inner = sizes.kind, sizes.hidden, sizes.intermediate
    if stage == GATHER:
        line = rows.attended[row].reshape(-1)
    elif stage == ACTIVATE:
        line = line[:inner]
        activated(rows.wide[row, :inner], rows.wide[row, inner : 2 * inner], line)
    else:
        weight = weights.norm if layer < 0 else (weights.input_norm if stage == NORM else weights.mlp_norm)[layer]
        line = line[:hidden]
        normed(rows.state[row], weight, sizes.epsilon, line)
    _put(kind, line, row, rows.left, rows.units)


@compiled()
def _tasks(sizes, stage, count, threads) -> int:
    """Into how many tasks a stage is cut for so many rows."""
    if stage == ATTEND:
        each = max(1, MOST_ROWS * sizes.kv_heads // sizes.heads)
        return int(sizes.kv_heads * ((count + each - 1) // each))
    if stage in (QKV, OUT, GATE_UP, DOWN):
        return int(TASKS_PER_THREAD * threads)
    return int((count + ROWS_PER_TASK - 1) // ROWS_PER_TASK)


@compiled()
def _work(sizes, weights, rows, cache, now, layer, stage, task, tasks, thread) -> None:
    """One task of a layer's stage."""
    kind, count = sizes.kind, len(now.depths)
    left, units, line = rows.left, rows.units, rows.line[thread]
    if stage == QKV:
        _product(kind, count, left, units, sizes.hidden, weights.qkv[layer], weights.qkv_bias[layer], task, tasks,
                 rows.wide, False)  # fmt: skip
    elif stage == OUT:
        _product(kind, count, left, units, sizes.heads * sizes.width, weights.out[layer], weights.out_bias[layer],
                 task, tasks, rows.state, True)  # fmt: skip
    elif stage == GATE_UP:
        _product(kind, count, left, units, sizes.hidden, weights.gate_up[layer], weights.gate_up_bias[layer], task,
                 tasks, rows.wide, False)  # fmt: skip
    elif stage == DOWN:
        _product(kind, count, left, units, sizes.intermediate, weights.down[layer], weights.down_bias[layer], task,
                 tasks, rows.state, True)  # fmt: skip
    elif stage == ATTEND:
        _attend(sizes, rows, cache, layer, now, task, thread)
    else:
        for row in range(task * ROWS_PER_TASK, min((task + 1) * ROWS_PER_TASK, count)):
            if stage == ROTATE:
                _rotate(sizes, weights, rows, cache, layer, now, row, line)
            else:
                _rows_of(sizes, weights, rows, layer, stage, row, line)


@compiled()
def _finish(sizes, weights, rows, now, stage, task, tasks, thread) -> None:
    """One task of the stages after the layers: the last norm, and the logits."""
    wanted = len(now.logits)
    start = len(now.depths) - wanted
    if stage == 0:
        for row in range(start + task * ROWS_PER_TASK, start + min((task + 1) * ROWS_PER_TASK, wanted)):
            _rows_of(sizes, weights, rows, -1, NORM, row, rows.line[thread])
    else:
        none = weights.norm[:0]
        _product(sizes.kind, wanted, rows.left[start:], rows.units[start:], sizes.hidden, weights.head, none, task,
                 tasks, now.logits, False)  # fmt: skip


@compiled(nogil=True)
def run_pass(sizes, weights, rows, cache, now, counters, thread, threads) -> None:
    """Take part in a pass as thread number `thread` of `threads`; returns when the whole pass is done.

    counters  (stages, COUNTER) int64, zero at the pass's beginning and not used for another pass
    """
    count, wanted = len(now.depths), len(now.logits)
    layered = sizes.layers * STAGES
    for step in range(layered + (LAST_STAGES if wanted else 0)):
        layer, stage = step // STAGES, step % STAGES
        last = step >= layered
        if last:
            tasks = _tasks(sizes, NORM, wanted, threads) if stage == 0 else TASKS_PER_THREAD * threads
        else:
            tasks = _tasks(sizes, stage, count, threads)
        taken, done = counters[step, 0:].ctypes.data, counters[step, 8:].ctypes.data
        task = fetch_add(taken, 1)
        while task < tasks:
            if last:
                _finish(sizes, weights, rows, now, stage, task, tasks, thread)
            else:
                _work(sizes, weights, rows, cache, now, layer, stage, task, tasks, thread)
            fetch_add(done, 1)
            task = fetch_add(taken, 1)
        turns = 0
        while fetch(done) < tasks:
            turns += 1
            if turns % PATIENCE == 0:
                give_way()
            else:
                relax()
