from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.arrays import pack, unpack
from indexes.checked import BLOCK, CheckedFile, block_of_rows, saying_that_it_cannot_be_written, write_checked
from indexes.errors import DamagedIndexError, IndexStoreError
from indexes.live import numbers, ranges
from tests.indexes.small import checked

DATA = bytes(range(256)) * (BLOCK // 128) + b"end"  # two blocks and three bytes


@pytest.mark.parametrize("ends", [(0, 0), (0, 3), (BLOCK - 1, BLOCK + 1), (0, len(DATA)), (2 * BLOCK, len(DATA))])
def test_pieces_are_what_was_written(tmp_path: Path, ends: tuple[int, int]) -> None:
    assert checked(tmp_path / "f", DATA).read(*ends) == DATA[ends[0] : ends[1]]


def test_only_the_blocks_that_are_read_are_compared_and_each_once(tmp_path: Path) -> None:
    file = checked(tmp_path / "f", DATA)
    with (tmp_path / "f").open("r+b") as changed:
        changed.seek(BLOCK)
        changed.write(b"x")
    assert file.read(0, BLOCK) == DATA[:BLOCK]
    for _ in range(2):
        with pytest.raises(DamagedIndexError, match="is not what was written"):
            file.read(BLOCK + 5, BLOCK + 6)


@pytest.mark.parametrize(("row", "block"), [(2048, 4096), (768, 3840), (66, 4092), (8192, 8192)])
def test_a_block_has_as_many_whole_rows_as_a_page_and_one_at_least(row: int, block: int) -> None:
    assert block_of_rows(row) == block


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("block", [block_of_rows(24), BLOCK, 37])
def test_rows_come_in_the_order_asked_for_whatever_the_blocks(tmp_path: Path, block: int, held: bool) -> None:
    data = os.urandom(24 * 5000)
    rows = [4999, 0, 17, 17, 2731]
    expected = [list(data[24 * row : 24 * row + 24]) for row in rows]
    file = checked(tmp_path / "f", data, block, held)
    file.read(400, 410)
    for _ in range(2):
        assert file.rows(np.array(rows), 24).tolist() == expected


@pytest.mark.parametrize("held", [True, False])
def test_only_the_blocks_of_the_rows_that_are_read_are_compared(tmp_path: Path, held: bool) -> None:
    file = checked(tmp_path / "f", bytes(100), 10, held)  # rows of 4 bytes: the third one stands in two blocks
    with (tmp_path / "f").open("r+b") as changed:
        changed.seek(19)
        changed.write(b"x")
    assert not file.rows(np.array([0, 1, 5, 24]), 4).any()
    with pytest.raises(DamagedIndexError, match="is not what was written"):
        file.rows(np.array([0, 2]), 4)


def test_rows_of_a_file_that_was_cut_since_it_was_opened_are_held_or_damage(tmp_path: Path) -> None:
    held, read = checked(tmp_path / "held", bytes(100), 10, True), checked(tmp_path / "read", bytes(100), 10)
    for file in (held, read):
        file.rows(np.array([24]), 4)
        os.truncate(file.path, 98)
    assert not held.rows(np.array([24]), 4).any()
    with pytest.raises(DamagedIndexError, match="shorter than what was written"):
        read.rows(np.array([24]), 4)


def test_a_file_that_was_removed_is_still_read(tmp_path: Path) -> None:
    file = checked(tmp_path / "f", DATA)
    os.unlink(tmp_path / "f")
    assert file.read(5, 9) == DATA[5:9]


def test_the_whole_is_compared_with_its_checksum(tmp_path: Path) -> None:
    facts = write_checked(tmp_path / "f", b"abc")
    assert CheckedFile(tmp_path / "f", facts).whole() == b"abc"
    (tmp_path / "f").write_bytes(b"abd")
    with pytest.raises(DamagedIndexError, match=r"f is damaged: it is not what was written; do this$"):
        CheckedFile(tmp_path / "f", facts, "do this").whole()


def test_a_full_disk_is_told_with_the_file_and_what_to_do() -> None:
    with (
        pytest.raises(IndexStoreError, match=r"^x/y cannot be written \(No space left on device\); nothing was"),
        saying_that_it_cannot_be_written(Path("x/y")),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@given(values=st.lists(st.integers(-(2**40), 2**40)), text=st.binary(max_size=9))
def test_packed_arrays_come_back(values: list[int], text: bytes) -> None:
    pairs = np.array([(value, 1.5) for value in values], [("a", "<i8"), ("b", "<f4")])
    arrays = {"pairs": pairs, "text": np.frombuffer(text, np.uint8), "values": np.array(values, np.int64)}
    found = unpack(pack(arrays))
    assert {name: (array.dtype, array.tolist()) for name, array in found.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }


def test_numbers_become_ranges_and_come_back() -> None:
    assert ranges([7, 1, 2, 3, 7, 9]) == ((1, 4), (7, 8), (9, 10))
    assert numbers(((1, 4), (7, 8))) == {1, 2, 3, 7}
