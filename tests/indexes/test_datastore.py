"""What holds for datastores of both kinds: opening, refusing, replacing, being killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexes.corpus import Progress
from indexes.crest import CrestStore
from indexes.crest_build import build_crest
from indexes.datastore import names, size_bytes, verify_contents
from indexes.errors import DamagedIndexError, IndexStoreError
from indexes.files import CURRENT, MANIFEST, current_generation
from indexes.suffix_array import RestStore, build_rest
from tests.indexes.stores import HASH, forge, forge_manifest

Build = Callable[..., None]
Open = Callable[[Path, str], Any]
KINDS: dict[str, tuple[Build, Open]] = {"crest": (build_crest, CrestStore), "rest": (build_rest, RestStore)}
FILES = {"crest": ["buckets", "records"], "rest": ["order", "text"]}
TEXTS = [[1, 2, 3, 4, 5], [0, 1, 2, 3]]

every_kind = pytest.mark.parametrize("kind", KINDS)
every_file = pytest.mark.parametrize(("kind", "file"), [(kind, file) for kind in FILES for file in FILES[kind]])


@pytest.fixture
def folder(tmp_path: Path, kind: str) -> Path:
    KINDS[kind][0](tmp_path / "past", TEXTS, HASH, 6)
    return tmp_path / "past"


@every_kind
def test_a_store_holds_these_files_and_no_other(folder: Path, kind: str) -> None:
    generation = current_generation(folder)[0]
    assert sorted(path.name for path in generation.iterdir()) == sorted([*FILES[kind], MANIFEST])
    assert size_bytes(folder) == sum(path.stat().st_size for path in generation.iterdir())


@every_kind
def test_the_same_texts_give_the_same_bytes(folder: Path, kind: str) -> None:
    before = [(current_generation(folder)[0] / file).read_bytes() for file in FILES[kind]]
    KINDS[kind][0](folder, TEXTS, HASH, 6)
    assert [(current_generation(folder)[0] / file).read_bytes() for file in FILES[kind]] == before


@every_kind
def test_a_missing_store_is_called_missing_with_the_command_that_builds_it(tmp_path: Path, kind: str) -> None:
    with pytest.raises(IndexStoreError, match=r"no datastore 'past'; build one: python app.py datastore build PATH"):
        KINDS[kind][1](tmp_path / "past", HASH)


@every_kind
def test_another_tokenizer_s_store_is_refused_with_the_command_that_builds_it(folder: Path, kind: str) -> None:
    with pytest.raises(
        IndexStoreError,
        match=rf"'past' was built with another tokenizer .*datastore build PATH\.\.\. --name past --kind {kind}",
    ):
        KINDS[kind][1](folder, "another one")


@every_kind
def test_a_store_of_the_other_kind_is_refused_by_name(folder: Path, kind: str) -> None:
    other = "rest" if kind == "crest" else "crest"
    with pytest.raises(IndexStoreError, match=f"'past' is of kind '{kind}', not '{other}': use --drafter {kind}"):
        KINDS[other][1](folder, HASH)


@every_kind
def test_another_layout_is_refused_as_such(folder: Path, kind: str) -> None:
    forge(folder, layout=2)
    with pytest.raises(IndexStoreError, match="has layout 2"):
        KINDS[kind][1](folder, HASH)


@every_file
def test_a_truncated_file_is_refused_when_the_store_is_opened(folder: Path, kind: str, file: str) -> None:
    path = current_generation(folder)[0] / file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedIndexError, match=f"{file} is damaged: it has"):
        KINDS[kind][1](folder, HASH)


@every_file
def test_a_deleted_file_is_refused_when_the_store_is_opened(folder: Path, kind: str, file: str) -> None:
    (current_generation(folder)[0] / file).unlink()
    with pytest.raises(DamagedIndexError, match=f"{file} cannot be read"):
        KINDS[kind][1](folder, HASH)


@every_file
def test_a_flipped_bit_is_found_by_verifying_but_not_read_at_opening(folder: Path, kind: str, file: str) -> None:
    verify_contents(folder)
    path = current_generation(folder)[0] / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    KINDS[kind][1](folder, HASH)
    with pytest.raises(DamagedIndexError, match=f"{file} is damaged"):
        verify_contents(folder)


@every_kind
@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"null", b'{"format": 1}', b"\xff", b'{"format": 1, "files": []}'])
def test_a_manifest_that_is_none_is_damage(folder: Path, kind: str, data: bytes) -> None:
    forge_manifest(folder, data)
    with pytest.raises(IndexStoreError, match=r"manifest\.json"):
        KINDS[kind][1](folder, HASH)


@every_kind
@pytest.mark.parametrize("data", [b"", b"000009 " + b"0" * 64, b"x" * 71])
def test_a_damaged_CURRENT_is_damage(folder: Path, kind: str, data: bytes) -> None:
    (folder / CURRENT).write_bytes(data)
    with pytest.raises(DamagedIndexError):
        KINDS[kind][1](folder, HASH)


@every_kind
def test_an_open_store_still_answers_after_it_was_replaced(folder: Path, kind: str) -> None:
    build, opened = KINDS[kind]
    store = opened(folder, HASH)
    build(folder, [[1, 2, 0, 0]], HASH, 6)
    assert (store.lookup([1, 2])[1].tokens[0], opened(folder, HASH).lookup([1, 2])[1].tokens[0]) == (3, 0)


@every_kind
def test_an_interrupted_build_leaves_the_old_store_and_nothing_else(folder: Path, kind: str) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = sorted(folder.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        KINDS[kind][0](folder, [[3, 3, 3]], HASH, 6, progress=interrupt)
    assert sorted(folder.rglob("*")) == before
    assert KINDS[kind][1](folder, HASH).lookup([1, 2])[1].tokens[0] == 3


@every_kind
def test_progress_ends_at_the_total(tmp_path: Path, kind: str) -> None:
    last: dict[str, tuple[int, int]] = {}

    def report(what: str, done: int, total: int) -> None:
        last[what] = (done, total)

    progress: Progress = report
    KINDS[kind][0](tmp_path / "s", TEXTS, HASH, 6, progress=progress)
    assert last
    assert all(done == total for done, total in last.values())


def test_only_folders_with_a_store_are_listed(tmp_path: Path) -> None:
    for name in ("b", "a"):
        build_crest(tmp_path / name, TEXTS, HASH, 6)
    (tmp_path / "no store").mkdir()
    assert names(tmp_path) == ["a", "b"]
    assert names(tmp_path / "nowhere") == []


BUILDER = """
import sys, time
from pathlib import Path
from indexes.crest_build import build_crest
from indexes.suffix_array import build_rest
def report(what, done, total):
    print(what, flush=True)
    time.sleep(60)
build = {"crest": build_crest, "rest": build_rest}[sys.argv[2]]
build(Path(sys.argv[1]), [[3, 3, 3]], "a tokenizer", 6, progress=report)
"""


@every_kind
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_build_leaves_the_old_store_and_the_next_one_builds(
    folder: Path, kind: str, kill: signal.Signals
) -> None:
    command = [sys.executable, "-c", BUILDER, str(folder), kind]
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    watchdog = threading.Timer(100, process.kill)
    watchdog.start()
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(kill)
    process.communicate()
    watchdog.cancel()
    build, opened = KINDS[kind]
    assert opened(folder, HASH).lookup([1, 2])[1].tokens[0] == 3
    build(folder, [[1, 2, 0]], HASH, 6)
    assert opened(folder, HASH).lookup([1, 2])[1].tokens.tolist() == [0]
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["000002"]
