"""Compiled functions and what is kept of them on disk, each seen by a process of its own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from decoding.blend.features import featurise
from decoding.blend.search import search
from indexes.compiled import compiled

ROOT = Path(__file__).parents[2]

INNER = """
from indexes.compiled import compiled
STEP = {step}

@compiled()
def inner(x):
    return x + STEP
"""
OUTER = """
from indexes.compiled import compiled
from inner import inner

@compiled()
def outer(x):
    return 10 * inner(x)

print(outer(1), sum(outer.stats.cache_hits.values()))
"""


def run(folder: Path, **chosen: str) -> list[int]:
    """What `outer` says, and how many of its compiled forms came from disk."""
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "NUMBA_CACHE_DIR": str(folder / "kept"), **chosen
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "import outer"], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return [int(number) for number in done.stdout.split()]


def test_a_function_is_compiled_anew_when_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(step=1))
    assert run(tmp_path) == [20, 0]
    assert run(tmp_path) == [20, 1]
    (tmp_path / "inner.py").write_text(INNER.format(step=30))
    assert run(tmp_path) == [310, 0]
    assert run(tmp_path) == [310, 1]


def test_the_search_is_kept_no_longer_than_the_features_that_are_built_into_it() -> None:
    assert str(featurise._cache._cache_file._source_stamp) in str(search._cache._cache_file._source_stamp)  # type: ignore[attr-defined]


def test_without_a_folder_to_keep_them_in_functions_are_compiled_every_time(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(step=1))
    (tmp_path / "__pycache__").touch()  # a file: no folder can be made there, nor below the others
    nowhere = str(tmp_path / "__pycache__" / "none")
    chosen = {"NUMBA_CACHE_DIR": "", "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "LOCALAPPDATA": nowhere}
    assert run(tmp_path, **chosen) == [20, 0]
    assert run(tmp_path, **chosen) == [20, 0]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_torn_file_is_replaced(tmp_path: Path, kind: str) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(step=1))
    assert run(tmp_path) == [20, 0]
    torn = list((tmp_path / "kept").rglob(f"outer.outer*.{kind}"))
    assert torn
    for path in torn:
        path.write_bytes(path.read_bytes()[:-50])
    assert run(tmp_path) == [20, 0]
    assert run(tmp_path) == [20, 1]


def test_a_disk_that_is_full_costs_only_the_keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    @compiled()
    def twice(x: int) -> int:
        return 2 * x

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(twice._cache._cache_file, "save", full)  # type: ignore[attr-defined]
    assert twice(2) == 4
