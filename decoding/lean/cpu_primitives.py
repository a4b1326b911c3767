"""Small instructions that compiled Python lacks: bits as floats, sums of many lanes, and counters shared by threads.

Sums run over 16 lanes, each in order, and then over the lanes in a fixed tree: the same bits on every call.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from decoding.lean.cpu_tiles import FLOATS, I32, I64, LANES, F, call, instruction

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
        vector = builder.load(found)
        for half in (8, 4, 2, 1):
            order = ir.Constant(ir.VectorType(I32, LANES), [(lane + half) % LANES for lane in range(LANES)])
            vector = join(builder, vector, builder.shuffle_vector(vector, vector, order))
        return builder.extract_element(vector, I32(0))

    return emit


def _add(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, right)


def _add_square(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, builder.fmul(right, right))


def _larger(builder: Any, left: Any, right: Any) -> Any:
    """The larger one; what is no number stays, so that it is noticed."""
    choose = builder.or_(builder.fcmp_ordered("<", left, right), builder.fcmp_unordered("uno", right, right))
    return builder.select(choose, right, left)


_REDUCTION = types.float32(types.int64, types.int64)


@instruction
def total(_, address, vectors):
    """The sum of 16 * vectors float32 numbers at an address."""
    return _REDUCTION, _reduced(_ZERO, _add, _add)


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
