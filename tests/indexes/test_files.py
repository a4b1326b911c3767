from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from indexes.errors import IndexStoreError
from indexes.files import (
    HOLDER,
    MANIFEST,
    current_generation,
    generations,
    read_manifest,
    remove_index,
    write_lock,
    writing,
)
from indexes.store import open_index
from retrieval.indexing import build_index
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, build, document, no_progress


def write_generation(folder: Path) -> Path:
    with writing(folder) as draft:
        (draft / "data").write_text("x")
        (draft / MANIFEST).write_text("{}")
    return folder


def test_an_exception_while_writing_leaves_the_old_generation_and_nothing_else(tmp_path: Path) -> None:
    folder = write_generation(tmp_path / "i")
    before = sorted(folder.iterdir())

    def fail() -> None:
        with writing(folder) as draft:
            (draft / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert sorted(folder.iterdir()) == before


def test_a_new_generation_replaces_the_old_one(tmp_path: Path) -> None:
    folder = write_generation(write_generation(tmp_path / "i"))
    assert [path.name for path in generations(folder)] == ["000002"]


def test_another_format_is_refused_as_such(tmp_path: Path) -> None:
    generation, _ = current_generation(write_generation(tmp_path / "i"))
    manifest = (generation / MANIFEST).read_bytes().replace(b'"format": 1', b'"format": 2')
    (generation / MANIFEST).write_bytes(manifest)
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
    assert message.startswith(f"i is being written by another process (process {os.getpid()} on ")
    assert took_s < 1


@pytest.mark.parametrize("told", ["", "[]", '{"pid": 1}', None])
def test_what_a_dead_holder_left_hinders_nobody(tmp_path: Path, told: str | None) -> None:
    if told is not None:
        (tmp_path / HOLDER).write_text(told)
    with write_lock(tmp_path), write_lock(tmp_path):
        assert json.loads((tmp_path / HOLDER).read_text())["pid"] == os.getpid()
    assert not (tmp_path / HOLDER).exists()


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
from indexes.postings import PostingsWriter
from retrieval.indexing import build_index
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, document, no_progress
def slow(self):
    print("half written", flush=True)
    time.sleep(60)
PostingsWriter.finish = slow
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
    assert len(list((folder / "segments").iterdir())) == 1


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
