"""Files that are never half written: whole, synced, checksummed, renamed.

A datastore is a folder of numbered generations and a file CURRENT that names the one to read. A new generation
is written beside the old one and becomes current by one atomic rename; a kill at any point leaves the
old one or the new one. Passage indexes share the pointer and the lock; `indexes.generations` has the rest of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Container, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from indexes.errors import DamagedIndexError, IndexStoreError

FORMAT = 1
CURRENT = "CURRENT"
MANIFEST = "manifest.json"
HOLDER = "write.holder"


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it holds all of `data` or does not change."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


@contextlib.contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """Be the only writer of a folder, from reading what it holds to replacing it; a thread may hold it repeatedly.

    The system's own lock decides, and dies with its process; the file beside it only says who holds it.
    Raises IndexStoreError, naming who holds it, within a second if another process or thread is writing.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "write.lock", is_singleton=True)
        lock.acquire(timeout=0.5)
    except Timeout as error:
        raise IndexStoreError(
            f"{folder.name} is being written by another process{_holder(folder)}; try again when it is done"
        ) from error
    except OSError as error:
        raise IndexStoreError(f"{folder} cannot be written ({error.strerror}); nothing was changed") from error
    outermost = lock.lock_counter == 1
    try:
        if outermost:
            _say_who(folder)
        yield
    finally:
        if outermost:
            with contextlib.suppress(OSError):
                (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def _say_who(folder: Path) -> None:
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    told = {"pid": os.getpid(), "host": socket.gethostname(), "command": command, "since": since}
    with contextlib.suppress(OSError):  # a full disk is told by what is written next
        (folder / HOLDER).write_text(json.dumps(told), "ascii")


def _holder(folder: Path) -> str:
    """Who holds the lock, as far as can be told."""
    try:
        told = json.loads((folder / HOLDER).read_bytes())
        return f" (process {told['pid']} on {told['host']} since {told['since']}: {told['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """Hold the index's write lock and yield a fresh folder to write the next generation into.

    Leaving the block normally makes it current; leaving it by an exception (Ctrl-C too) removes it.
    """
    with write_lock(folder):
        draft = folder / "writing"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            yield draft
            _commit(folder, draft)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _commit(folder: Path, draft: Path) -> None:
    files = sorted(path for path in draft.rglob("*") if path.is_file() and path.name != MANIFEST)
    manifest = json.loads((draft / MANIFEST).read_text("utf-8"))
    manifest["format"] = FORMAT
    manifest["files"] = {path.relative_to(draft).as_posix(): sha256_file(path) for path in files}
    manifest["sizes"] = {path.relative_to(draft).as_posix(): path.stat().st_size for path in files}
    for path in files:
        sync(path)
    manifest_bytes = json.dumps(manifest, indent=1).encode("ascii")
    write_whole(draft / MANIFEST, manifest_bytes)
    older = generations(folder)
    generation = folder / f"{max((int(path.name) for path in older), default=0) + 1:06}"
    draft.rename(generation)
    sync(folder)
    pointer = f"{generation.name} {hashlib.sha256(manifest_bytes).hexdigest()}"
    write_whole(folder / CURRENT, pointer.encode("ascii"))
    for path in older:
        shutil.rmtree(path, ignore_errors=True)


def remove_index(folder: Path) -> None:
    """Remove an index at once: a kill leaves all of it, or nothing that has its name."""
    with write_lock(folder):
        removed = folder.with_name(f".{folder.name}.removed")
        shutil.rmtree(removed, ignore_errors=True)
        folder.rename(removed)
        sync(folder.parent)
        shutil.rmtree(removed, ignore_errors=True)


def generations(folder: Path) -> list[Path]:
    """The folders of all generations, oldest first; more than one only while one replaces another, or after a kill."""
    return sorted(path for path in folder.glob("*") if re.fullmatch(r"[0-9]{6,}", path.name))


def current_generation(folder: Path) -> tuple[Path, str]:
    """The generation to read and its manifest's SHA-256, as CURRENT names them.

    Raises IndexStoreError if there is none, DamagedIndexError if CURRENT is torn or gone.
    """
    try:
        pointer = (folder / CURRENT).read_bytes()
    except OSError as error:
        unfinished = (folder / f"{CURRENT}.tmp").exists()  # of a passage index whose first generation it precedes
        if generations(folder) or (any(folder.glob("generations/*.json")) and not unfinished):
            raise DamagedIndexError(f"{folder / CURRENT} cannot be read ({error.strerror})") from error
        raise IndexStoreError(f"there is no index named {folder.name!r}") from None
    match = re.fullmatch(rb"(\d{6,}) ([0-9a-f]{64})", pointer)
    if match is None:
        raise DamagedIndexError(f"{folder / CURRENT} is damaged: it does not name a generation")
    return folder / match[1].decode(), match[2].decode()


def read_manifest(generation: Path, digest: str, whole: Container[str] | None = None) -> dict[str, Any]:
    """A generation's manifest, after comparing it and every file it names with their checksums.

    If `whole` says which files are to be read, only the sizes of the others are compared: some are too large.
    Raises DamagedIndexError naming the file that is missing or changed, IndexStoreError for another format.
    """
    _compare(generation / MANIFEST, digest)
    manifest: dict[str, Any] = json.loads((generation / MANIFEST).read_text("utf-8"))
    if manifest["format"] != FORMAT:
        raise IndexStoreError(f"{generation} has format {manifest['format']}; this version reads format {FORMAT}")
    for name, expected in manifest["files"].items():
        if whole is None or name in whole:
            _compare(generation / name, expected)
        else:
            _compare_size(generation / name, manifest["sizes"][name])
    return manifest


def _compare(path: Path, digest: str) -> None:
    try:
        actual = sha256_file(path)
    except OSError as error:
        raise DamagedIndexError(f"{path} cannot be read ({error.strerror})") from error
    if actual != digest:
        raise DamagedIndexError(f"{path} is damaged: it is not what was written")


def _compare_size(path: Path, expected: int) -> None:
    try:
        actual = path.stat().st_size
    except OSError as error:
        raise DamagedIndexError(f"{path} cannot be read ({error.strerror})") from error
    if actual != expected:
        raise DamagedIndexError(f"{path} is damaged: it has {actual} bytes, not the {expected} that were written")
