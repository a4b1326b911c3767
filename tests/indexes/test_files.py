from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from indexes.errors import DamagedIndexError, IndexStoreError
from indexes.files import (
    CURRENT,
    MANIFEST,
    current_generation,
    generations,
    read_manifest,
    remove_index,
    write_lock,
    writing,
)
from indexes.store import known_roots, open_index
from retrieval.indexing import build_index
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, build, document, no_progress

DATA_FILES = ["passages.sqlite", "vectors.faiss", "embeddings.npy", "tokens.i8", "tokens.offsets.npy"]
POSTINGS_FILES = ["data", "indices", "indptr"]
FILES = [MANIFEST, *DATA_FILES, *(f"postings/{name}.csc.index.npy" for name in POSTINGS_FILES)]
FILES += ["roots.json", "excluded.json", "postings/params.index.json", "postings/vocab.index.json"]


def generation_of(folder: Path) -> Path:
    return current_generation(folder)[0]


def test_every_file_of_a_generation_is_in_the_list_that_the_tests_below_damage(tmp_path: Path) -> None:
    generation = generation_of(build(tmp_path / "i"))
    assert sorted(
        path.relative_to(generation).as_posix() for path in generation.rglob("*") if path.is_file()
    ) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_a_flipped_byte_in_any_file_is_refused_with_the_file_s_name(tmp_path: Path, name: str, where: float) -> None:
    folder = build(tmp_path / "i")
    path = generation_of(folder) / name
    data = bytearray(path.read_bytes())
    data[int(where * (len(data) - 1))] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedIndexError, match=path.name):
        open_index(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    folder = build(tmp_path / "i")
    path = generation_of(folder) / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedIndexError, match=path.name):
        open_index(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_deleted_file_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    folder = build(tmp_path / "i")
    path = generation_of(folder) / name
    path.unlink()
    with pytest.raises(DamagedIndexError, match=path.name):
        open_index(folder)


@pytest.mark.parametrize("data", [b"", b"000001", b"000001 " + b"0" * 64, b"../../x " + b"0" * 64, b"\xff" * 71])
def test_a_damaged_CURRENT_is_refused(tmp_path: Path, data: bytes) -> None:
    folder = build(tmp_path / "i")
    (folder / CURRENT).write_bytes(data)
    with pytest.raises(DamagedIndexError):
        open_index(folder)


def test_a_deleted_CURRENT_is_damage_and_not_a_missing_index(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    (folder / CURRENT).unlink()
    with pytest.raises(DamagedIndexError, match="CURRENT"):
        open_index(folder)


def test_a_missing_index_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(IndexStoreError, match="there is no index named 'none'"):
        open_index(tmp_path / "none")


@pytest.mark.parametrize("name", [*FILES, CURRENT])
@pytest.mark.parametrize("damage", [b"", b"x" * 100, None])
def test_whichever_one_file_is_damaged_the_roots_can_still_be_told(
    tmp_path: Path, name: str, damage: bytes | None
) -> None:
    folder = build(tmp_path / "i")
    path = folder / CURRENT if name == CURRENT else generation_of(folder) / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert known_roots(folder) == list(SETTINGS.roots)


def test_no_index_has_no_known_roots(tmp_path: Path) -> None:
    assert known_roots(tmp_path / "none") == []


def test_an_exception_while_writing_leaves_the_old_generation_and_nothing_else(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    before = sorted(folder.iterdir())

    def fail() -> None:
        with writing(folder) as draft:
            (draft / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (sorted(folder.iterdir()), len(open_index(folder).passages)) == (before, 1)


def test_a_new_generation_replaces_the_old_one(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    build_index(folder, SETTINGS, [document("b", "two")], HashEncoder(), no_progress)
    assert [path.name for path in generations(folder)] == ["000002"]


def test_an_index_opened_before_it_was_replaced_still_answers(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    index = open_index(folder)
    build_index(folder, SETTINGS, [document("b", "two")], HashEncoder(), no_progress)
    assert (index.passages.get([0])[0].text, index.tokens is not None and len(index.tokens.of(0))) == ("one", 2)


def test_another_format_is_refused_as_such(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    generation = generation_of(folder)
    manifest = (generation / MANIFEST).read_bytes().replace(b'"format": 1', b'"format": 2')
    (generation / MANIFEST).write_bytes(manifest)
    import hashlib

    with pytest.raises(IndexStoreError, match="has format 2; this version reads format 1"):
        read_manifest(generation, hashlib.sha256(manifest).hexdigest())


def _try_to_write(folder: Path, outcome: multiprocessing.Queue[tuple[str, float]]) -> None:
    start = time.monotonic()
    try:
        with writing(folder):
            outcome.put(("wrote", time.monotonic() - start))
    except IndexStoreError as error:
        outcome.put((str(error), time.monotonic() - start))


def test_another_process_that_writes_is_refused_within_a_second(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    outcome: multiprocessing.Queue[tuple[str, float]] = context.Queue()
    with write_lock(tmp_path / "i"):
        process = context.Process(target=_try_to_write, args=(tmp_path / "i", outcome))
        process.start()
        message, took_s = outcome.get(timeout=60)
        process.join()
    assert "being written by another process" in message
    assert took_s < 1


def test_another_thread_that_writes_is_refused(tmp_path: Path) -> None:
    errors: list[str] = []

    def write() -> None:
        try:
            with write_lock(tmp_path / "i"):
                errors.append("wrote")
        except IndexStoreError as error:
            errors.append(str(error))

    with write_lock(tmp_path / "i"):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert "being written" in errors[0]


WRITER = """
import sys, time
from pathlib import Path
import indexes.store as store
from retrieval.indexing import build_index
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, document, no_progress
build = store.build_postings
def slow(texts, folder):
    build(texts, folder)
    print("half written", flush=True)
    time.sleep(60)
store.build_postings = slow
build_index(Path(sys.argv[1]), SETTINGS, [document("b", "two")], HashEncoder(), no_progress)
"""


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_writer_leaves_the_old_index_and_the_next_one_writes(tmp_path: Path, kill: signal.Signals) -> None:
    folder = build(tmp_path / "i")
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=os.getcwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"half written\n"
    process.send_signal(kill)
    process.communicate(timeout=30)
    assert open_index(folder).passages.texts() == ["one"]
    build_index(folder, SETTINGS, [document("c", "three")], HashEncoder(), no_progress)
    assert open_index(folder).passages.texts() == ["three"]
    assert not (folder / "writing").exists()


def test_a_removed_index_is_gone_and_can_be_made_again(tmp_path: Path) -> None:
    remove_index(build(tmp_path / "i"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IndexStoreError, match="there is no index named 'i'"):
        current_generation(tmp_path / "i")
    assert open_index(build(tmp_path / "i")).passages.texts() == ["one"]


def test_an_index_that_is_being_written_is_not_removed(tmp_path: Path) -> None:
    folder = build(tmp_path / "i")
    errors: list[BaseException] = []

    def remove() -> None:
        try:
            remove_index(folder)
        except IndexStoreError as error:
            errors.append(error)

    with write_lock(folder):
        thread = threading.Thread(target=remove)
        thread.start()
        thread.join()
    assert "being written" in str(errors[0])
    assert open_index(folder).passages.texts() == ["one"]
