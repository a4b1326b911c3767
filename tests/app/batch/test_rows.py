"""Rows on disk, cut and damaged at every point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.batch.rows import RowWriter, read_rows, repair

ROWS: list[dict[str, Any]] = [
    {"row": 0, "answer": "one\u2028line"},
    {"row": 1, "answer": "half a pair: \ud800", "error": None},
    {"row": 2, "error": {"type": "SettingError", "message": "no"}},
]


def written(path: Path) -> Path:
    with RowWriter(path) as writer:
        for row in ROWS:
            writer.append(row)
    return path


def test_rows_are_one_line_each_and_read_back_as_they_were(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl")
    assert path.read_bytes().count(b"\n") == 3
    assert list(read_rows(path)) == ROWS


def test_a_file_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert list(read_rows(tmp_path / "rows.jsonl")) == []
    assert repair(tmp_path / "rows.jsonl") == 0


def test_cut_at_any_byte_all_whole_rows_stay_and_the_torn_one_can_be_written_again(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.jsonl").read_bytes()
    path = tmp_path / "rows.jsonl"
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        complete = whole[:length].count(b"\n")
        torn = not (length == 0 or whole[:length].endswith(b"\n"))
        assert repair(path) == torn
        assert list(read_rows(path)) == ROWS[:complete]
        with RowWriter(path) as writer:
            for row in ROWS[complete:]:
                writer.append(row)
        assert path.read_bytes() == whole


def test_damage_in_the_middle_costs_only_the_damaged_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0" * 50 + b"\n" + b"[" * 100_000 + b"\n" + b"7\n" + b'{"id": 1}\n' + lines[2])
    assert repair(path) == 4
    assert [row["row"] for row in read_rows(path)] == [0, 2]


def test_a_row_that_stands_there_twice_counts_once(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl")
    path.write_bytes(path.read_bytes() + json.dumps({"row": 1, "answer": "again"}).encode() + b"\n")
    assert repair(path) == 1
    assert list(read_rows(path)) == ROWS


def test_what_failed_is_dropped_when_it_is_to_be_asked_again(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl")
    assert repair(path, drop_failed=True) == 1
    assert list(read_rows(path)) == ROWS[:2]


def test_a_whole_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl")
    before = path.stat()
    assert repair(path) == 0
    assert path.stat().st_ino == before.st_ino
