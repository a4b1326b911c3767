"""What is done to single rows on a CPU: norms, rotation, activation, and their change into a number format.

Loops over elements without a sum give the same bits whether they run as vectors or one by one; sums are left to
`cpu_primitives`, in whose order they have the same bits too.
"""

from __future__ import annotations

import math

import numpy as np

from decoding.lean.cpu_primitives import TAYLOR, bits_as_float, float_as_bits, total_of_squares
from decoding.lean.cpu_tiles import LANES
from indexes.compiled import compiled

LOG2_E = np.float32(math.log2(math.e))
_C1, _C2, _C3, _C4, _C5, _C6 = (np.float32(coefficient) for coefficient in TAYLOR)
_LOWEST, _HIGHEST = np.float32(-126.0), np.float32(127.0)
_ONE, _TINY = np.float32(1.0), np.float32(1e-30)


@compiled()
def exp2(x: np.float32) -> np.float32:
    """2^x for a float32, to about its last bit; 0 far below, no number for none."""
    inside = min(max(x, _LOWEST), _HIGHEST)
    whole = np.float32(np.rint(inside))
    f = inside - whole
    power = _ONE + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
    scale = bits_as_float(np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)))
    found = np.float32(0.0) if x < _LOWEST else power * scale
    return found if x == x else x


@compiled()
def round_to_bf16(number: np.float32) -> np.uint16:
    """The nearest bfloat16, as its bits; ties go to the even one."""
    bits = np.uint32(float_as_bits(number))
    rounded = np.uint32(bits + np.uint32(0x7FFF) + np.uint32((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.uint16(rounded if number == number else np.uint32(0x7FC0))


@compiled()
def store_floats(source, target):
    """Copy float32 numbers to float32."""
    for at in range(len(source)):
        target[at] = source[at]


@compiled()
def store_bf16(source, target):
    """Round float32 numbers to the bits of bfloat16."""
    for at in range(len(source)):
        target[at] = round_to_bf16(source[at])


@compiled(error_model="numpy")
def store_int8(source, target):
    """Round float32 numbers to unsigned bytes around 128; returns what a unit of them is worth."""
    largest = np.int32(0)
    for at in range(len(source)):
        largest = max(largest, float_as_bits(source[at]) & np.int32(0x7FFFFFFF))
    unit = bits_as_float(largest) / np.float32(127.0)
    inverse = _ONE / max(unit, _TINY)
    for at in range(len(source)):
        target[at] = np.uint8(np.int32(np.rint(source[at] * inverse)) + np.int32(128))
    return unit


@compiled(error_model="numpy")
def normed(source, weight, epsilon, target) -> None:
    """The root mean square norm of a row, times `weight`."""
    width = len(source)
    mean = total_of_squares(source.ctypes.data, width // LANES) / np.float32(width)
    scale = _ONE / np.float32(math.sqrt(mean + epsilon))
    for at in range(width):
        target[at] = source[at] * scale * weight[at]


@compiled()
def rotated(row, cos, sin, target) -> None:
    """Turn a head (D,) by its position's angles: halves are the two coordinates, as Llama stores them."""
    half = len(row) // 2
    for at in range(half):
        first, second = row[at], row[half + at]
        target[at] = first * cos[at] - second * sin[at]
        target[half + at] = second * cos[half + at] + first * sin[half + at]


@compiled(error_model="numpy")
def activated(gate, up, target) -> None:
    """silu(gate) * up."""
    for at in range(len(gate)):
        target[at] = gate[at] / (_ONE + exp2(-gate[at] * LOG2_E)) * up[at]
