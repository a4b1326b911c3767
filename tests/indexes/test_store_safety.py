"""Kills, full disks, changed bytes and many writers; a part of each, or all of it with `pytest --full`."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.errors import IndexStoreError
from indexes.generations import changing, read_current
from indexes.maintenance import verify
from indexes.store import change_index, open_index, write_index
from tests.indexes.faults import OPERATIONS, Faults
from tests.indexes.small import SETTINGS, everything, one_chunk

DOCUMENTS = [one_chunk("a", "one"), one_chunk("b", "text two"), one_chunk("c", "number three stands")]
SHARE = 5  # of the calls, one is tried where not all are
Call = tuple[str, int, str]  # name, number among those of the name, line of the log
Tried = list[dict[str, object]]


def sweep(what: str, operation: str, start: str, tried: int, of: int) -> dict[str, object]:
    """A sweep that was gone through: every assertion held."""
    return {"sweep": what, "operation": operation, "index": start, "tried": tried, "of": of, "failed": 0}


@pytest.fixture(scope="module")
def faults() -> Iterator[Faults]:
    with Faults() as running:
        yield running


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes to change: none; one with three documents, one deleted and one in another segment; one to be merged."""
    home = tmp_path_factory.mktemp("starts")
    (home / "nothing").mkdir()
    write_index(home / "some" / "i", SETTINGS, DOCUMENTS)
    change_index(open_index(home / "some" / "i"), SETTINGS, [one_chunk("d", "text")], ["c"])
    write_index(home / "many" / "i", SETTINGS, DOCUMENTS[:1])
    for number in range(7):
        change_index(open_index(home / "many" / "i"), SETTINGS, [one_chunk(f"{number}", f"text {number}")])
    return home


def state(folder: Path) -> object:
    """All that the index gives; None if there is none."""
    try:
        return everything(open_index(folder))
    except IndexStoreError as error:
        if "there is no index named" in str(error):
            return None
        raise


def copy(start: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(start, to)
    return to / "i"


def files(folder: Path) -> list[str]:
    """The files of an index that a generation has, or nobody needs."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith("write."))


def expected_files(folder: Path) -> list[str]:
    try:
        current = read_current(folder)
    except IndexStoreError:
        return []
    names = [f"segments/{segment.name}/{name}" for segment in current.segments for name in segment.files]
    return sorted(
        ["CURRENT", f"generations/{current.number:06}.json", f"generations/{current.number:06}.roots.json", *names]
    )


CASES = [
    ("build", "nothing"), ("build", "some"), ("append", "some"), ("append", "many"), ("delete", "some"),
    ("compact", "some"), ("remove", "some"),
]  # fmt: skip


def test_every_operation_is_tried() -> None:
    assert {operation for operation, _ in CASES} == set(OPERATIONS)


def outcomes(faults: Faults, operation: str, start: Path, tmp_path: Path) -> tuple[list[object], list[Call]]:
    """The states before and after an operation, and the calls that it makes."""
    folder = copy(start, tmp_path / "run")
    before = state(folder)
    found = faults.run(operation, folder)
    assert found.said == "done"
    return [before, state(folder)], list(found.calls)


@pytest.mark.parametrize(("operation", "start"), CASES)
def test_a_kill_at_any_call_leaves_the_old_generation_or_the_new_one_and_the_next_writer_cleans_up(
    faults: Faults, starts: Path, tmp_path: Path, full: bool, tried: Tried, operation: str, start: str
) -> None:
    states, calls = outcomes(faults, operation, starts / start, tmp_path)
    assert len(calls) > 15
    chosen = calls if full else calls[::SHARE]
    for name, number, line in chosen:
        folder = copy(starts / start, tmp_path / "run")
        found = faults.run(operation, folder, f"{name}:signal=KILL:when={number}")
        assert found.killed, line
        assert state(folder) in states, line
        with changing(folder):
            pass
        assert files(folder) == expected_files(folder), line
        assert state(folder) in states, line
    tried.append(sweep("kill at a call", operation, start, len(chosen), len(calls)))


@pytest.mark.parametrize(("operation", "start"), CASES[:-1])
@pytest.mark.parametrize("ever", ["+", ""])
def test_a_full_disk_at_any_call_is_told_and_leaves_the_old_generation_and_nothing_else(
    faults: Faults, starts: Path, tmp_path: Path, full: bool, tried: Tried, operation: str, start: str, ever: str
) -> None:
    states, calls = outcomes(faults, operation, starts / start, tmp_path)
    needing_room = [call for call in calls if call[0] in ("write", "pwrite64", "fsync", "mkdir", "openat")]
    chosen = needing_room if full else needing_room[::SHARE]
    for name, number, line in chosen:
        folder = copy(starts / start, tmp_path / "run")
        found = faults.run(operation, folder, f"{name}:error=ENOSPC:when={number}{'' if name == 'openat' else ever}")
        assert not found.killed
        if found.said != "done":  # a merge after the change, and the note of who writes, may fail unsaid
            assert found.said.startswith("IndexStoreError: "), line
            assert "No space left on device" in found.said, line
        after_all = found.said == "done" or "may not stay so" in found.said
        assert state(folder) == states[1 if after_all else 0], line
        assert files(folder) == expected_files(folder), line
    what = f"full disk from a call on{'' if ever else ', once'}"
    tried.append(sweep(what, operation, start, len(chosen), len(needing_room)))


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Cut, with a flipped bit, or with a field overwritten."""
    while True:
        changed, at = bytearray(data), draw.randrange(max(1, len(data)))
        kind = draw.randrange(3)
        if kind == 0:
            del changed[at:]
        elif kind == 1 and data:
            changed[at] ^= 1 << draw.randrange(8)
        elif data:
            field = draw.choice([1, 2, 4, 8])
            values = [b"\0" * field, b"\xff" * field, b"9" * field, draw.randbytes(field)]
            changed[at : at + field] = draw.choice(values)
        if bytes(changed) != data:
            return bytes(changed)


def used(folder: Path, right: object) -> None:
    """Read all that an index gives, then all that it has."""
    assert everything(open_index(folder)) == right
    verify(folder)


def test_a_mutated_file_is_a_typed_error_and_never_another_result(
    starts: Path, tmp_path: Path, full: bool, tried: Tried
) -> None:
    folder = copy(starts / "some", tmp_path / "run")
    right, draw = everything(open_index(folder)), random.Random(0)
    names = files(folder)
    mutations = 5000 if full else 250
    for _ in range(mutations):
        path = folder / draw.choice(names)
        whole = path.read_bytes()
        path.write_bytes(mutated(whole, draw))
        with pytest.raises(IndexStoreError):
            used(folder, right)
        path.write_bytes(whole)
    assert everything(open_index(folder)) == right
    tried.append(sweep("mutated file", "open, search, verify", "some", mutations, 5000))


def test_of_what_many_processes_append_nothing_is_lost_or_doubled_and_readers_never_fail(
    faults: Faults, tmp_path: Path, full: bool, tried: Tried
) -> None:
    folder = tmp_path / "i"
    write_index(folder, SETTINGS, [])
    processes, count = (8, 200) if full else (4, 20)
    faults.append_in_many_processes(folder, processes, count)
    seen = 0
    while seen < processes * count:
        passages = open_index(folder).passages
        assert seen <= len(passages)
        seen = len(passages)
        assert len(set(passages.sources())) == seen
    assert faults.wait() == ["done"] * processes
    index = open_index(folder)
    expected = {f"{worker}-{number}" for worker in range(processes) for number in range(count)}
    assert sorted(index.passages.sources()) == sorted(expected)
    assert sorted(index.passages.texts()) == sorted(f"number {name}" for name in expected)
    assert files(folder) == expected_files(folder)
    tried.append(sweep(f"append from {processes} processes at once", "append", "empty", processes * count, 1600))
