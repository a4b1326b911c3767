"""Which documents and rows of a segment are still in the index. The others were deleted, and wait for a merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Range = tuple[int, int]  # first, and one after the last


@dataclass(frozen=True, slots=True)
class Live:
    """A segment in its place: its first row is the index's row `offset`; documents (M,) and rows (N,) that count.

    bitmap is the rows as bits, the first one lowest; passages is how many rows count, whole whether all do.
    """

    offset: int
    documents: Mask
    rows: Mask
    bitmap: npt.NDArray[np.uint8]
    passages: int
    whole: bool

    @classmethod
    def without(cls, deleted: Iterable[Range], first_rows: npt.NDArray[np.int64], offset: int) -> Live:
        """A segment whose documents begin at first_rows (M + 1,), less those in the deleted ranges of numbers."""
        documents = np.ones(len(first_rows) - 1, np.bool_)
        for begin, end in deleted:
            documents[begin:end] = False
        rows = np.repeat(documents, np.diff(first_rows))
        bitmap = np.packbits(rows, bitorder="little")
        return cls(offset, documents, rows, bitmap, int(rows.sum()), bool(documents.all()))

    def numbers(self) -> list[int]:
        """The numbers of the documents that count."""
        found: list[int] = np.flatnonzero(self.documents).tolist()
        return found


def ranges(numbers: Iterable[int]) -> tuple[Range, ...]:
    """Whole numbers as ranges, in order."""
    found: list[Range] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return tuple(found)


def numbers(deleted: Sequence[Range]) -> set[int]:
    """Ranges as whole numbers."""
    return {number for begin, end in deleted for number in range(begin, end)}
