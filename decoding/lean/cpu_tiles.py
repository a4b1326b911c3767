"""The innermost loops on a CPU, written as vector instructions: a tile of a matrix product, in any number format.

Every kind multiplies 32-bit groups of 1 float32, 2 bfloat16 or 4 int8 numbers: one group of a row against the groups of
32 columns. Each result is summed over the groups in their order by one accumulator, so its bits depend neither on how
many rows are computed together nor on who computes them: that is what makes decoding in bfloat16 exact.

A compiler from loops would neither find the dot product instructions nor keep all accumulators in registers, hence
LLVM's instructions are given here. Processors without them get multiplications that they do have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from indexes.compiled import compiled

F32, BF16, INT8 = 0, 1, 2
GROUP = {F32: 1, BF16: 2, INT8: 4}  # numbers in 32 bits
LANES = 16
COLUMNS = 32  # of a panel: two vectors
PANEL_STEP = 4 * COLUMNS  # bytes of one group of a panel
AFTER_PANEL = 8 * COLUMNS  # bytes after an int8 panel: a scale (float32) and a correction (int32) per column

I8, I16, I32, I64, F = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
FLOATS, WORDS = ir.VectorType(F, LANES), ir.VectorType(I32, LANES)
Emit = Callable[..., Any]
instruction: Any = intrinsic  # what it makes is called by compiled functions only


class _BFloat(ir.Type):  # type: ignore[misc]
    """llvmlite has no bfloat; LLVM does."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash("bfloat")


@functools.cache
def cpu_features() -> frozenset[str]:
    """What this processor can do, in LLVM's names; of another one (NUMBA_CPU_NAME) what NUMBA_CPU_FEATURES says."""
    named, allowed = getattr(config, "CPU_NAME", None), getattr(config, "CPU_FEATURES", None)
    if named is not None or allowed is not None:
        return frozenset(name[1:] for name in str(allowed or "").split(",") if name.startswith("+"))
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


def multiplies_bf16() -> bool:
    """Whether this processor multiplies bfloat16 numbers itself."""
    return "avx512bf16" in cpu_features()


def tile_rows() -> int:
    """Rows whose accumulators fit into the registers beside two vectors of weights."""
    return 12 if "avx512f" in cpu_features() else 3


def call(builder: Any, name: str, returned: Any, *arguments: Any) -> Any:
    """Call a function by its name."""
    declared = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(returned, [argument.type for argument in arguments]), name
    )
    return builder.call(declared, arguments)


def _multiply_add(builder: Any, left: Any, right: Any, sums: Any) -> Any:
    return call(builder, "llvm.fma.v16f32", FLOATS, left, right, sums)


def _dot_f32(builder: Any, sums: Any, left: Any, right: Any) -> Any:
    return _multiply_add(builder, builder.bitcast(left, FLOATS), builder.bitcast(right, FLOATS), sums)


def _dot_bf16(builder: Any, sums: Any, left: Any, right: Any) -> Any:
    if multiplies_bf16():
        pairs = ir.VectorType(_BFloat(), 2 * LANES)
        operands = builder.bitcast(left, pairs), builder.bitcast(right, pairs)
        return call(builder, "llvm.x86.avx512bf16.dpbf16ps.512", FLOATS, sums, *operands)
    for part in (_low_bf16, _high_bf16):
        sums = _multiply_add(builder, part(builder, left), part(builder, right), sums)
    return sums


def _low_bf16(builder: Any, words: Any) -> Any:
    return builder.bitcast(builder.shl(words, ir.Constant(WORDS, [16] * LANES)), FLOATS)


def _high_bf16(builder: Any, words: Any) -> Any:
    return builder.bitcast(builder.and_(words, ir.Constant(WORDS, [0xFFFF0000] * LANES)), FLOATS)


def _dot_int8(builder: Any, sums: Any, left: Any, right: Any) -> Any:
    """Unsigned bytes of a row times signed bytes of a column."""
    if "avx512vnni" in cpu_features():
        return call(builder, "llvm.x86.avx512.vpdpbusd.512", WORDS, sums, left, right)
    for byte in range(4):
        shift = ir.Constant(WORDS, [24 - 8 * byte] * LANES)
        down = ir.Constant(WORDS, [24] * LANES)
        factor = builder.lshr(builder.shl(left, shift), down)
        sums = builder.add(sums, builder.mul(factor, builder.ashr(builder.shl(right, shift), down)))
    return sums


_DOTS: dict[int, Emit] = {F32: _dot_f32, BF16: _dot_bf16, INT8: _dot_int8}


def _at(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def spread(builder: Any, word: Any) -> Any:
    """The same 32 bits in all lanes."""
    first = builder.insert_element(ir.Constant(WORDS, ir.Undefined), word, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, ir.Constant(WORDS, ir.Undefined), ir.Constant(WORDS, None))


def _tile(builder: Any, kind: int, rows: int, where: dict[str, Any]) -> None:
    """`rows` rows times two vectors of columns; sums of floats begin with what is in `out`, if they go `onto` it."""
    sums_type = WORDS if kind == INT8 else FLOATS
    places = [
        _at(builder, builder.add(builder.add(where["out"], builder.mul(where["out_stride"], I64(row))), I64(64 * half)),
            FLOATS)
        for row in range(rows) for half in (0, 1)
    ]  # fmt: skip
    sums = [cgutils.alloca_once(builder, sums_type) for _ in places]
    for one, place in zip(sums, places, strict=True):
        builder.store(ir.Constant(WORDS, None) if kind == INT8 else _begun(builder, place, where), one)
    with cgutils.for_range(builder, where["steps"]) as loop:
        panel = builder.add(where["panel"], builder.mul(loop.index, where["panel_step"]))
        halves = [builder.load(_at(builder, builder.add(panel, I64(64 * half)), WORDS), align=64) for half in (0, 1)]
        column = builder.add(where["left"], builder.mul(loop.index, I64(4)))
        for row in range(rows):
            word = builder.load(
                _at(builder, builder.add(column, builder.mul(where["left_stride"], I64(row))), I32), align=4
            )
            group = spread(builder, word)
            for half in (0, 1):
                one = sums[2 * row + half]
                builder.store(_DOTS[kind](builder, builder.load(one), group, halves[half]), one)
    for index, (one, place) in enumerate(zip(sums, places, strict=True)):
        result = builder.load(one)
        if kind == INT8:
            result = _scaled(builder, result, index // 2, index % 2, place, where)
        builder.store(result, place, align=4)


def _begun(builder: Any, place: Any, where: dict[str, Any]) -> Any:
    """What is in `out`, or zero."""
    onto = builder.icmp_signed("!=", where["onto"], I64(0))
    return builder.select(onto, builder.load(place, align=4), ir.Constant(FLOATS, None))


def _scaled(builder: Any, sums: Any, row: int, half: int, place: Any, where: dict[str, Any]) -> Any:
    """What an int8 sum adds to `out`: corrected for the rows' offset, times the scales of its row and column."""
    after = builder.add(where["panel"], builder.mul(where["steps"], where["panel_step"]))
    scales = builder.load(_at(builder, builder.add(after, I64(64 * half)), FLOATS), align=64)
    correction = builder.load(_at(builder, builder.add(after, I64(128 + 64 * half)), WORDS), align=64)
    row_scale = builder.load(_at(builder, builder.add(where["scales"], I64(4 * row)), I32), align=4)
    both = builder.fmul(scales, builder.bitcast(spread(builder, row_scale), FLOATS))
    exact = builder.sitofp(builder.sub(sums, correction), FLOATS)
    return _multiply_add(builder, exact, both, _begun(builder, place, where))


def _tiles(kind: int) -> Emit:
    """The code for 1 to `tile_rows()` rows; any other number does nothing."""

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        names = ("left", "left_stride", "scales", "panel", "panel_step", "steps", "out", "out_stride", "onto")
        where = dict(zip(names, arguments[1:], strict=True))
        done = builder.append_basic_block("done")
        cases = builder.switch(arguments[0], done)
        for count in range(1, tile_rows() + 1):
            block = builder.append_basic_block(f"rows.{count}")
            cases.add_case(I64(count), block)
            builder.position_at_end(block)
            _tile(builder, kind, count, where)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return emit


_SIGNATURE = types.void(*[types.int64] * 10)


@instruction
def _tile_f32(_, rows, left, left_stride, scales, panel, panel_step, steps, out, out_stride, onto):
    return _SIGNATURE, _tiles(F32)


@instruction
def _tile_bf16(_, rows, left, left_stride, scales, panel, panel_step, steps, out, out_stride, onto):
    return _SIGNATURE, _tiles(BF16)


@instruction
def _tile_int8(_, rows, left, left_stride, scales, panel, panel_step, steps, out, out_stride, onto):
    return _SIGNATURE, _tiles(INT8)


MOST_ROWS = tile_rows()


@compiled()
def multiply(kind, rows, left, left_stride, scales, panel, panel_step, steps, out, out_stride, onto):
    """`rows` rows at `left` times a panel of 32 columns, put into the float32 rows at `out` or, with `onto`, added.

    kind         what is multiplied: F32, BF16 or INT8
    left         address of the first row's groups; the next row lies `left_stride` bytes on
    scales       address of the rows' float32 scales (int8 only)
    panel        address of the panel's first group; the next group lies `panel_step` bytes on
    steps        how many groups
    out          address of the first row's 32 sums; the next row's lie `out_stride` bytes on
    """
    tiles = (rows + MOST_ROWS - 1) // MOST_ROWS
    even = (rows + tiles - 1) // max(tiles, 1)
    for row in range(0, rows, even):
        count = min(even, rows - row)
        from_row = left + row * left_stride
        to_row = out + row * out_stride
        if kind == BF16:
            _tile_bf16(count, from_row, left_stride, scales, panel, panel_step, steps, to_row, out_stride, onto)
        elif kind == INT8:
            _tile_int8(
                count, from_row, left_stride, scales + 4 * row, panel, panel_step, steps, to_row, out_stride, onto
            )
        else:
            _tile_f32(count, from_row, left_stride, scales, panel, panel_step, steps, to_row, out_stride, onto)
