"""Compiled code is used as long as no source of it changes."""

from __future__ import annotations

import os
from pathlib import Path

from decoding.blend.search import drop_stale


def test_compiled_code_older_than_any_source_is_deleted(tmp_path: Path) -> None:
    times = {"callee.py": 20, "caller.py": 10, "old.nbi": 15, "old.1.nbc": 19, "new.nbi": 25, "other.pyc": 5}
    for name, time in times.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    sources = [tmp_path / "caller.py", tmp_path / "callee.py"]
    drop_stale(tmp_path, sources)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["callee.py", "caller.py", "new.nbi", "other.pyc"]
    drop_stale(tmp_path / "not there", sources)
