"""Small instructions that compiled Python lacks: bits as floats, sums of many lanes, and counters shared by threads.

Sums run over 16 lanes, each in order, and then over the lanes in a fixed tree: the same bits on every call.
"""

from __future__ import annotations

import math
import os
import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from decoding.lean.cpu_tiles import FLOATS, I32, I64, LANES, WORDS, F, call, instruction, spread

_ROUNDER = 1.5 * 2**23
TAYLOR = [math.log(2) ** n / math.factorial(n) for n in range(1, 7)]  # of 2^f, for f within a half: 1e-8 off at most
_NEGATIVE_INFINITY = ir.Constant(FLOATS, [float("-inf")] * LANES)
_ZERO = ir.Constant(FLOATS, None)


def _reduced(start: Any, take: Any, join: Any) -> Any:
    """The code of a reduction over `vectors` vectors at an address."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        address, vectors = arguments
        found = cgutils.alloca_once(builder, FLOATS)
        builder.store(start, found)
        with cgutils.for_range(builder, vectors) as loop:
            place = builder.inttoptr(builder.add(address, builder.mul(loop.index, I64(4 * LANES))), FLOATS.as_pointer())
            builder.store(take(builder, builder.load(found), builder.load(place, align=4)), found)
        return _across(builder, builder.load(found), join)

    return emit


def _across(builder: Any, vector: Any, join: Any) -> Any:
    """Join all lanes."""
    for half in (8, 4, 2, 1):
        order = ir.Constant(WORDS, [(lane + half) % LANES for lane in range(LANES)])
        vector = join(builder, vector, builder.shuffle_vector(vector, vector, order))
    return builder.extract_element(vector, I32(0))


def _add(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, right)


def _add_square(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, builder.fmul(right, right))


def _larger(builder: Any, left: Any, right: Any) -> Any:
    """The larger one; what is no number stays, so that it is noticed."""
    choose = builder.or_(builder.fcmp_ordered("<", left, right), builder.fcmp_unordered("uno", right, right))
    return builder.select(choose, right, left)


def _exponentials(builder: Any, powers: Any) -> Any:
    """2^x of 16 lanes to about the last bit: 0 far below, no number for none; x is at most about 0."""

    def lanes(number: float) -> Any:
        return ir.Constant(FLOATS, [float(number)] * LANES)

    below = builder.fcmp_ordered("<", powers, lanes(-126.0))
    powers = builder.select(below, lanes(-126.0), powers)
    shifted = builder.fadd(powers, lanes(_ROUNDER))  # its low bits are the nearest whole number
    part = builder.fsub(powers, builder.fsub(shifted, lanes(_ROUNDER)))
    found = lanes(TAYLOR[-1])
    for coefficient in (*TAYLOR[-2::-1], 1.0):
        found = call(builder, "llvm.fma.v16f32", FLOATS, found, part, lanes(coefficient))
    whole = builder.shl(builder.bitcast(shifted, WORDS), _words(23))
    scale = builder.bitcast(builder.add(whole, builder.bitcast(lanes(1.0), WORDS)), FLOATS)
    return builder.select(below, _ZERO, builder.fmul(found, scale))


def _words(number: int) -> Any:
    return ir.Constant(WORDS, [number] * LANES)


def _rounded(builder: Any, numbers: Any) -> Any:
    """16 float32 numbers as bfloat16 bits; ties go to the even one."""
    bits = builder.bitcast(numbers, WORDS)
    odd = builder.and_(builder.lshr(bits, _words(16)), _words(1))
    up = builder.lshr(builder.add(builder.add(bits, odd), _words(0x7FFF)), _words(16))
    sound = builder.fcmp_ordered("ord", numbers, numbers)
    return builder.trunc(builder.select(sound, up, _words(0x7FC0)), ir.VectorType(ir.IntType(16), LANES))


def _weighed(narrow: bool) -> Any:
    """The code of a softmax without its division."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        scores, vectors, most, factor, weights = arguments
        most, factor = (spread(builder, builder.bitcast(number, I32)) for number in (most, factor))
        most, factor = builder.bitcast(most, FLOATS), builder.bitcast(factor, FLOATS)
        sums = cgutils.alloca_once(builder, FLOATS)
        builder.store(_ZERO, sums)
        with cgutils.for_range(builder, vectors) as loop:
            place = builder.inttoptr(builder.add(scores, builder.mul(loop.index, I64(4 * LANES))), FLOATS.as_pointer())
            score = builder.fmul(builder.fsub(builder.load(place, align=4), most), factor)
            found = _exponentials(builder, score)
            builder.store(builder.fadd(builder.load(sums), found), sums)
            kept = _rounded(builder, found) if narrow else found
            step = builder.mul(loop.index, I64((2 if narrow else 4) * LANES))
            builder.store(kept, builder.inttoptr(builder.add(weights, step), kept.type.as_pointer()), align=2)
        return _across(builder, builder.load(sums), _add)

    return emit


_WEIGHED = types.float32(types.int64, types.int64, types.float32, types.float32, types.int64)


@instruction
def weigh_bf16(_, scores, vectors, most, factor, weights):
    """Store 2^((score - most) * factor) of 16 * vectors float32 scores as bfloat16; returns the sum of all, unrounded.

    scores and weights are addresses.
    """
    return _WEIGHED, _weighed(True)


@instruction
def weigh_f32(_, scores, vectors, most, factor, weights):
    """As `weigh_bf16`, but stored as float32."""
    return _WEIGHED, _weighed(False)


_REDUCTION = types.float32(types.int64, types.int64)


@instruction
def total_of_squares(_, address, vectors):
    """The sum of the squares of 16 * vectors float32 numbers at an address."""
    return _REDUCTION, _reduced(_ZERO, _add_square, _add)


@instruction
def largest(_, address, vectors):
    """The largest of 16 * vectors float32 numbers at an address."""
    return _REDUCTION, _reduced(_NEGATIVE_INFINITY, _larger, _larger)


@instruction
def bits_as_float(_, bits):
    """The float32 with these 32 bits."""
    return types.float32(types.int32), lambda _, builder, __, arguments: builder.bitcast(arguments[0], F)


@instruction
def float_as_bits(_, number):
    """The 32 bits of a float32."""
    return types.int32(types.float32), lambda _, builder, __, arguments: builder.bitcast(arguments[0], I32)


@instruction
def fetch_add(_, address, number):
    """Add to an int64 that threads share; returns what it was before."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], I64.as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), emit


@instruction
def fetch(_, address):
    """Read an int64 that threads share, and all that was written before it."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(arguments[0], I64.as_pointer()), "acquire", 8)

    return types.int64(types.int64), emit


@instruction
def relax(_):
    """Tell the processor that this is a waiting loop."""

    def emit(context: Any, builder: Any, __: Any, ___: Any) -> Any:
        if platform.machine().lower() in ("x86_64", "amd64"):
            call(builder, "llvm.x86.sse2.pause", ir.VoidType())
        return context.get_dummy_value()

    return types.void(), emit


@instruction
def give_way(_):
    """Let the system run another thread, where it can be asked to."""

    def emit(context: Any, builder: Any, __: Any, ___: Any) -> Any:
        if hasattr(os, "sched_yield"):
            call(builder, "sched_yield", I32)
        return context.get_dummy_value()

    return types.void(), emit
