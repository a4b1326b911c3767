"""Rows written by a process that is killed again and again, at times that nobody chose."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from app.batch.rows import read_rows

ROOT = Path(__file__).parents[3]
MOST_ROWS = 3000
WRITER = """
import sys
from pathlib import Path
from app.batch.rows import RowWriter, read_rows, repair
path = Path(sys.argv[1])
repair(path)
first = sum(1 for _ in read_rows(path))
print("ready", flush=True)
with RowWriter(path) as rows:
    for number in range(first, int(sys.argv[2])):
        rows.append({"row": number, "answer": f"{number} " * 20_000})  # long enough to be torn
"""


def test_forty_kills_lose_no_row_repeat_none_and_leave_none_torn(tmp_path: Path) -> None:
    path, chance = tmp_path / "rows.jsonl", random.Random(1)
    torn = 0
    for _ in range(40):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(MOST_ROWS)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        process.communicate()
        torn += not path.read_bytes().endswith(b"\n")
        numbers = [row["row"] for row in read_rows(path)]
        assert numbers == list(range(len(numbers)))
        assert all(row["answer"] == f"{row['row']} " * 20_000 for row in read_rows(path))
    assert len(numbers) > 40
    print(f"{len(numbers)} rows, {torn} torn")
