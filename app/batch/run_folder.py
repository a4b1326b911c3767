"""The folder of a run: run.json says what was asked with which settings, rows.jsonl what was answered.

A run may be resumed with the settings that it was begun with, and with no others. One process at a time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.batch.rows import repair
from indexes.errors import IndexStoreError, SettingError
from indexes.files import write_lock, write_whole

FORMAT = 1
RUN, ROWS, SUMMARY, REPORT = "run.json", "rows.jsonl", "summary.json", "report.md"

Settings = Mapping[str, Any]


@contextlib.contextmanager
def open_run(folder: Path, settings: Settings, retry_failed: bool = False) -> Iterator[int]:
    """Begin a run in a folder, or resume the one there, and hold it; yields how many torn lines were dropped.

    Raises SettingError if the run there has other settings, naming each that differs, if the folder holds
    something else, or if another process is writing there.
    """
    _check_folder(folder)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(write_lock(folder))
        except IndexStoreError as error:
            raise SettingError(
                f"another process is writing a run into {folder}; wait, or give another --out"
            ) from error
        run = {"format": FORMAT, "settings": dict(settings)}
        if (folder / RUN).exists():
            _compare(folder, json.loads(json.dumps(run)))
        else:
            write_whole(folder / RUN, json.dumps(run, indent=1).encode("ascii"))
        yield repair(folder / ROWS, retry_failed)


def _check_folder(folder: Path) -> None:
    """A folder is a run's, empty, or refused: nobody's other files are mixed with a run's."""
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"--out {folder} is a file; give a folder")
    ours = {RUN, f"{RUN}.tmp", "write.lock"}
    if folder.exists() and not (folder / RUN).exists() and any(path.name not in ours for path in folder.iterdir()):
        raise SettingError(f"--out {folder} holds other files and no run; give a new folder")


def _compare(folder: Path, run: Mapping[str, Any]) -> None:
    try:
        there = json.loads((folder / RUN).read_text("utf-8"))
        then: Any = there["settings"]
        same_format = there["format"] == FORMAT
        differing = [name for name in {**then, **run["settings"]} if _differs(name, then, run["settings"])]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingError(f"{folder / RUN} is damaged, so the run cannot be resumed; give a new --out") from error
    if not same_format:
        raise SettingError(f"the run in {folder} has format {there['format']}, not {FORMAT}; give a new --out")
    if differing:
        told = "; ".join(
            f"{name} was {_shown(then, name)} and is {_shown(run['settings'], name)}" for name in differing
        )
        raise SettingError(
            f"the run in {folder} has other settings: {told}. Resume it with the same ones, or give a new --out"
        )


def _differs(name: str, then: Settings, now: Settings) -> bool:
    return (name in then) != (name in now) or then.get(name) != now.get(name)


def _shown(settings: Settings, name: str) -> str:
    return json.dumps(settings[name]) if name in settings else "not there"
