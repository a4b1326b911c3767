"""What one pass over a draft tree needs to know, as one flat array of integers: a single copy to the device.

A tree that branches is told to the kernels without a queries x context mask, in one of two ways:

bits   each row's ancestors among the rows of the pass, 64 to an integer. Every row sees the whole prefix.
paths  each row's ancestors in order, itself last. Together with the prefix they are the row's text by *logical*
       position, whatever columns the tokens lie in: what the row-invariant kernel walks.

Knows no tensor's device and no kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from decoding.tree import Bools, DraftTree, Ints, ancestor_mask, depths

WORD = 64
HEADER = 2
BUCKETS = (1, 8, 16, 32, 64)
PADDING = -1  # the depth of a row that holds no token

Array = TypeVar("Array", Ints, torch.Tensor)


def bucket(rows: int) -> int:
    """R, the rows that a pass over the root and N nodes (`rows` = N + 1) is padded to: 1, 8, 16, 32, 64, 128, ..."""
    return next((size for size in BUCKETS if rows <= size), 1 << (rows - 1).bit_length())


@dataclass(frozen=True, slots=True)
class Layout:
    """How a flat array is divided: a header of cache length and first row, tokens (R,), depths (R,), `seen` (R, width).

    rows   R
    width  integers per row: words of bits, or the longest path
    """

    rows: int
    width: int

    @property
    def size(self) -> int:
        """Integers in all."""
        return HEADER + self.rows * (2 + self.width)

    def tokens(self, packed: Array) -> Array:
        """(R,) what the rows read."""
        return packed[HEADER : HEADER + self.rows]

    def depths(self, packed: Array) -> Array:
        """(R,) steps from the root, which is 0; PADDING for rows without a token."""
        return packed[HEADER + self.rows : HEADER + 2 * self.rows]

    def seen(self, packed: Array) -> Array:
        """(R, width) bits or paths."""
        return packed[HEADER + 2 * self.rows :].reshape(self.rows, self.width)


def visible(tree: DraftTree) -> Bools:
    """(N + 1, N + 1) what the root and the nodes see of each other, themselves included."""
    mask = np.zeros((len(tree) + 1, len(tree) + 1), np.bool_)
    mask[:, 0] = True
    mask[1:, 1:] = ancestor_mask(tree)
    return mask


def words(mask: Bools, width: int) -> Ints:
    """(R, width) the rows of a mask (R, columns) as bits, the first column lowest; columns <= 64 * width."""
    padded = np.zeros((len(mask), width * WORD), np.bool_)
    padded[:, : mask.shape[1]] = mask
    return np.packbits(padded, axis=1, bitorder="little").view(np.int64)


def paths(mask: Bools, width: int) -> Ints:
    """(R, width) the columns that each row of a mask sees, ascending, then zeros: parents come first in a tree."""
    found = np.zeros((len(mask), width), np.int64)
    rows, columns = np.nonzero(mask)
    places = np.cumsum(mask, axis=1)[rows, columns] - 1
    found[rows, places] = columns
    return found


def pack_bits(last: int, tree: DraftTree, length: int) -> tuple[Layout, Ints]:
    """One pass over the whole tree behind `length` cached tokens, padded to its bucket.

    Rows without a token read `last` too: whatever its keys and values are, the answer depends on them anyway.
    """
    rows = bucket(len(tree) + 1)
    layout = Layout(rows, -(-rows // WORD))
    packed = np.zeros(layout.size, np.int64)
    _fill(layout, packed, (length, 0), last, tree.tokens, depths(tree))
    layout.seen(packed)[: len(tree) + 1] = words(visible(tree), layout.width)
    return layout, packed


def pack_paths(last: int, tree: DraftTree, length: int, rows: int) -> list[tuple[Layout, Ints]]:
    """Passes of exactly `rows` rows each, as many as the tree needs, each behind the columns of those before it."""
    mask, depth = visible(tree), np.concatenate([[0], depths(tree)])
    tokens = np.concatenate([[last], tree.tokens])
    layout = Layout(rows, bucket(max(rows, int(depth.max()) + 1)))
    found = []
    for first in range(0, len(tokens), rows):
        part = slice(first, first + rows)
        packed = np.zeros(layout.size, np.int64)
        _fill(layout, packed, (length, first), int(tokens[first]), tokens[part][1:], depth[part][1:])
        layout.depths(packed)[0] = depth[first]
        layout.seen(packed)[: len(depth[part])] = paths(mask[part], layout.width)
        found.append((layout, packed))
    return found


def _fill(layout: Layout, packed: Ints, header: tuple[int, int], first: int, tokens: Ints, depth: Ints) -> None:
    packed[:HEADER] = header
    used = len(tokens) + 1
    layout.tokens(packed)[:] = first
    layout.tokens(packed)[1:used] = tokens
    layout.depths(packed)[1:used] = depth
    layout.depths(packed)[used:] = PADDING
