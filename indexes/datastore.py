"""What all datastores share: a folder of generations whose manifest names kind, tokenizer and vocabulary.

Opening reads the manifest and the sizes of the files, never their contents: a datastore may be larger than memory.
`verify` compares the contents too. Whoever reads contents validates what it reads.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.errors import DamagedIndexError, IndexStoreError
from indexes.files import CURRENT, MANIFEST, current_generation, generations, read_manifest, writing

REBUILD = "python app.py datastore build PATH... --name {name}"
LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Opened:
    """A datastore whose manifest was read: its current generation and the manifest's values."""

    name: str
    generation: Path
    values: dict[str, Any]

    def number(self, key: str, low: int, high: int) -> int:
        """A whole number of the manifest. Raises DamagedIndexError if it is none, or not in [low, high]."""
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.damaged(f"{key} is {value!r}, which is not a whole number from {low} to {high}")
        return value

    def damaged(self, what: str) -> DamagedIndexError:
        """An error to raise: what is wrong in this datastore, and what to do."""
        return DamagedIndexError(
            f"the datastore {self.name!r} is damaged: {what}; build it again: {REBUILD.format(name=self.name)}"
        )

    def open(self, file: str) -> int:
        """A descriptor of a file of the datastore, to be closed by the caller."""
        try:
            return os.open(self.generation / file, os.O_RDONLY)
        except OSError as error:
            raise self.damaged(f"{file} cannot be read ({error})") from error

    def map(self, file: str) -> mmap.mmap:
        """A file of the datastore, memory-mapped."""
        try:
            with (self.generation / file).open("rb") as opened:
                return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise self.damaged(f"{file} cannot be read ({error})") from error


def exists(folder: Path) -> bool:
    """Whether a datastore was ever written into this folder."""
    return (folder / CURRENT).exists() or bool(generations(folder))


def names(home: Path) -> list[str]:
    """The datastores below `home`."""
    return sorted(path.name for path in home.glob("*") if exists(path))


def read_store(folder: Path) -> Opened:
    """Read the manifest of a datastore, whatever its kind and tokenizer.

    Raises IndexStoreError if there is none or it has another format, DamagedIndexError if a file is not as written.
    """
    if not exists(folder):
        raise IndexStoreError(f"there is no datastore {folder.name!r}; build one: {REBUILD.format(name=folder.name)}")
    current = current_generation(folder)
    try:
        return _read(folder, *current)
    except DamagedIndexError:
        replaced = current_generation(folder)  # a writer may have replaced the generation that was being opened
        if replaced == current:
            raise
        return _read(folder, *replaced)


def _read(folder: Path, generation: Path, digest: str) -> Opened:
    try:
        values = read_manifest(generation, digest, whole=())
        kind, layout = values["kind"], values["layout"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, IndexStoreError):
            raise
        raise DamagedIndexError(
            f"{generation / MANIFEST} does not describe a datastore; build it again: {REBUILD.format(name=folder.name)}"
        ) from error
    if layout != LAYOUT:
        raise IndexStoreError(
            f"the datastore {folder.name!r} has layout {layout!r} (kind {kind!r}); this version reads {LAYOUT}; "
            f"build it again: {REBUILD.format(name=folder.name)}"
        )
    return Opened(folder.name, generation, values)


def open_store(folder: Path, kind: str, tokenizer_hash: str) -> Opened:
    """Read the manifest of a datastore of this kind, made with this tokenizer. Raises IndexStoreError if it is not."""
    opened = read_store(folder)
    made_as, made_with = opened.values["kind"], opened.values.get("tokenizer_hash")
    if made_as != kind:
        raise IndexStoreError(
            f"the datastore {folder.name!r} is of kind {made_as!r}, not {kind!r}: use --drafter {made_as}, or build "
            f"another: {REBUILD.format(name='NAME')} --kind {kind}"
        )
    if made_with != tokenizer_hash:
        raise IndexStoreError(
            f"the datastore {folder.name!r} was built with another tokenizer ({str(made_with)[:12]!r}, the model's is "
            f"{tokenizer_hash[:12]!r}): build it again with this model: "
            f"{REBUILD.format(name=folder.name)} --kind {kind}"
        )
    return opened


@contextlib.contextmanager
def writing_store(
    folder: Path, kind: str, tokenizer_hash: str, vocabulary: int
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a folder to write a generation into, and its manifest's values to add to; both become current together.

    Leaving by an exception, Ctrl-C too, leaves what was there before and nothing else.
    """
    with writing(folder) as draft:
        values: dict[str, Any] = {"kind": kind, "layout": LAYOUT}
        values |= {"tokenizer_hash": tokenizer_hash, "vocabulary": vocabulary}
        yield draft, values
        (draft / MANIFEST).write_text(json.dumps(values), "utf-8")


def verify_contents(folder: Path) -> Opened:
    """Compare every byte of a datastore with what was written. Raises DamagedIndexError naming the file."""
    opened = read_store(folder)
    read_manifest(*current_generation(folder))
    return opened


def size_bytes(folder: Path) -> int:
    """How many bytes the current generation takes on disk, its manifest included."""
    return sum(path.stat().st_size for path in current_generation(folder)[0].iterdir())
