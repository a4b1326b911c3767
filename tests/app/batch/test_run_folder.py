"""The folder of a run: begun, resumed with the same settings only, and held by one process."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.batch.run_folder import open_run
from indexes.errors import SettingError

SETTINGS = {"dataset": "q.jsonl", "top_k": 3, "limit": None}


def test_a_run_is_resumed_with_the_same_settings(tmp_path: Path) -> None:
    for _ in range(2):
        with open_run(tmp_path / "run", SETTINGS) as dropped:
            assert dropped == 0


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({**SETTINGS, "top_k": 5}, "top_k was 3 and is 5"),
        ({**SETTINGS, "limit": 10, "dataset": "p"}, 'dataset was "q.jsonl" and is "p"; limit was null and is 10'),
        ({**SETTINGS, "new": 1}, "new was not there and is 1"),
        ({"dataset": "q.jsonl", "limit": None}, "top_k was 3 and is not there"),
    ],
)
def test_other_settings_are_refused_and_each_difference_is_named(
    tmp_path: Path, now: dict[str, object], told: str
) -> None:
    with open_run(tmp_path, SETTINGS):
        pass
    with pytest.raises(SettingError) as refused, open_run(tmp_path, now):
        pass
    assert f"has other settings: {told}. Resume it with the same ones" in str(refused.value)
    assert json.loads((tmp_path / "run.json").read_text())["settings"] == SETTINGS


def test_two_runs_cannot_write_into_one_folder(tmp_path: Path) -> None:
    def second() -> None:
        with open_run(tmp_path, SETTINGS):
            pass

    with (
        open_run(tmp_path, SETTINGS),
        ThreadPoolExecutor(1) as other,
        pytest.raises(SettingError, match="another process is writing a run into"),
    ):
        other.submit(second).result()


def test_a_folder_with_other_files_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(SettingError, match="holds other files and no run"), open_run(tmp_path, SETTINGS):
        pass
    with pytest.raises(SettingError, match="is a file; give a folder"), open_run(tmp_path / "letter.txt", SETTINGS):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "settings": 3}'])
def test_a_damaged_record_of_the_settings_ends_with_a_message(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(SettingError, match="is damaged, so the run cannot be resumed"), open_run(tmp_path, SETTINGS):
        pass


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": 0, "settings": SETTINGS}))
    with pytest.raises(SettingError, match="has format 0, not 1"), open_run(tmp_path, SETTINGS):
        pass
