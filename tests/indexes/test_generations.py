from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from indexes.errors import DamagedIndexError, IndexFormatError, IndexStoreError, SettingError
from indexes.files import CURRENT
from indexes.generations import TEMPORARY, changing, read_current
from indexes.maintenance import verify
from indexes.roots import generation_file
from indexes.store import change_index, known_roots, open_index, write_index
from tests.indexes.small import FILES, SETTINGS, build, everything, old_index, one_chunk


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_every_file_of_an_index_is_in_the_list_that_the_tests_below_damage(tmp_path: Path) -> None:
    assert files(build(tmp_path / "i")) == sorted([CURRENT, *FILES, "write.lock"])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_a_flipped_byte_in_any_file_is_refused_with_the_file_s_name(tmp_path: Path, name: str, where: float) -> None:
    path = build(tmp_path / "i") / name
    data = bytearray(path.read_bytes())
    data[int(where * (len(data) - 1))] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedIndexError, match=f"{path} is damaged"):
        everything(open_index(tmp_path / "i"))
    with pytest.raises(DamagedIndexError, match=f"{path} is damaged"):
        verify(tmp_path / "i")


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_refused_at_opening_with_its_name(tmp_path: Path, name: str) -> None:
    path = build(tmp_path / "i") / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedIndexError, match=f"{path} is damaged"):
        open_index(tmp_path / "i")


@pytest.mark.parametrize("name", FILES)
def test_a_deleted_file_is_refused_at_opening_with_its_name(tmp_path: Path, name: str) -> None:
    path = build(tmp_path / "i") / name
    path.unlink()
    with pytest.raises(DamagedIndexError, match=f"{path} is damaged"):
        open_index(tmp_path / "i")


def test_a_file_that_is_cut_while_the_index_is_open_is_an_error_and_not_a_signal(tmp_path: Path) -> None:
    index = open_index(build(tmp_path / "i"))
    with (tmp_path / "i" / "segments" / "000001" / "texts.utf8").open("r+b") as file:
        file.truncate(1)
    with pytest.raises(DamagedIndexError, match=r"texts.utf8 is damaged: it is shorter"):
        index.passages.texts()


@pytest.mark.parametrize("data", [b"", b"000001", b"000001 " + b"0" * 64, b"../../x " + b"0" * 64, b"\xff" * 71])
def test_a_damaged_CURRENT_is_refused(tmp_path: Path, data: bytes) -> None:
    (build(tmp_path / "i") / CURRENT).write_bytes(data)
    with pytest.raises(DamagedIndexError):
        open_index(tmp_path / "i")


def test_a_deleted_CURRENT_is_damage_and_not_a_missing_index(tmp_path: Path) -> None:
    (build(tmp_path / "i") / CURRENT).unlink()
    with pytest.raises(DamagedIndexError, match="CURRENT"):
        open_index(tmp_path / "i")


def test_a_first_generation_that_never_became_current_is_a_missing_index(tmp_path: Path) -> None:
    (build(tmp_path / "i") / CURRENT).rename(tmp_path / "i" / TEMPORARY)
    with pytest.raises(IndexStoreError, match="there is no index named 'i'"):
        open_index(tmp_path / "i")


def test_a_missing_index_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(IndexStoreError, match="there is no index named 'none'"):
        open_index(tmp_path / "none")


@pytest.mark.parametrize("values", [{}, {"format": 2}, {"format": 2, "settings": {}, "segments": 3}, []])
def test_a_generation_that_says_nothing_is_damage_whatever_its_checksum(tmp_path: Path, values: object) -> None:
    forge(build(tmp_path / "i"), values)
    with pytest.raises(DamagedIndexError, match="does not describe an index"):
        open_index(tmp_path / "i")


def forge(folder: Path, values: object) -> None:
    data = json.dumps(values).encode()
    digest = hashlib.sha256(data).hexdigest()
    generation_file(folder, 1).write_bytes(digest.encode() + b"\n" + data)
    (folder / CURRENT).write_text(f"000001 {digest}")


def test_another_format_is_refused_as_such(tmp_path: Path) -> None:
    forge(build(tmp_path / "i"), {"format": 3})
    with pytest.raises(IndexFormatError, match="has format 3; this version reads format 2"):
        open_index(tmp_path / "i")


def test_an_index_of_the_first_format_is_refused_as_such_and_tells_its_roots(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match="'i' has format 1; this version reads format 2"):
        open_index(old_index(tmp_path / "i", "notes", "r\udcff"))
    assert known_roots(tmp_path / "i") == ["notes", "r\udcff"]


def test_an_index_of_the_first_format_goes_when_a_new_one_is_current_and_not_before(tmp_path: Path) -> None:
    def fail() -> None:
        with changing(old_index(tmp_path / "i", "notes", "r\udcff")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert known_roots(tmp_path / "i") == ["notes", "r\udcff"]
    build(tmp_path / "i")
    assert not (tmp_path / "i" / "000004").exists()
    assert read_current(tmp_path / "i").number == 5


@pytest.mark.parametrize("name", [*FILES, CURRENT])
@pytest.mark.parametrize("damage", [b"", b"x" * 100, None])
def test_whichever_one_file_is_damaged_the_roots_can_still_be_told(
    tmp_path: Path, name: str, damage: bytes | None
) -> None:
    path = build(tmp_path / "i") / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert known_roots(tmp_path / "i") == list(SETTINGS.roots)


def test_no_index_has_no_known_roots(tmp_path: Path) -> None:
    assert known_roots(tmp_path / "none") == []


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    before = files(folder)
    for name in ("segments/000009/arrays", "generations/000009.json", "generations/000009.roots.json", TEMPORARY):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("half")
    with changing(folder):
        pass
    assert files(folder) == before


def test_a_damaged_index_is_left_as_it_is_until_it_is_built_again(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    (folder / CURRENT).write_bytes(b"x")
    before = files(folder)
    with changing(folder) as change:
        assert change.current is None
    assert files(folder) == before
    write_index(folder, SETTINGS, [one_chunk("b", "two")])
    assert open_index(folder).passages.texts() == ["two"]
    assert len(files(folder)) == len(before)


def test_a_damaged_index_can_be_built_again_after_a_kill_and_a_failure_in_between(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    (folder / CURRENT).write_bytes(b"x")
    before = files(folder)
    (folder / TEMPORARY).write_bytes(b"half")
    with pytest.raises(SettingError, match="is given twice"):
        write_index(folder, SETTINGS, [one_chunk("b", "two"), one_chunk("b", "two")])
    assert files(folder) == before
    (folder / TEMPORARY).write_bytes(b"half")
    write_index(folder, SETTINGS, [one_chunk("b", "two")])
    assert open_index(folder).passages.texts() == ["two"]


def test_a_change_does_not_read_what_it_does_not_change(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    (folder / "segments" / "000001" / "tokens.i8").write_bytes(b"x" * 2 * 33)
    change_index(open_index(folder), replace(SETTINGS, roots=("more",)), [one_chunk("b", "two")])
    assert open_index(folder).passages.texts() == ["one", "two"]
