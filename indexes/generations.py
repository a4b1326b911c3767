"""Generations of an index: which segments it has, and how a change becomes current at once or not at all.

NAME/CURRENT         names the generation to read, and its SHA-256
NAME/generations/    000007.json, the generation; 000007.roots.json, what a damaged one is rebuilt from
NAME/segments/       a folder per segment, called after the generation that it came with

A change writes a new segment and a new generation beside those that are read, and then replaces CURRENT by one rename.
What no generation uses any more is removed after that, and what killed writers left by the next one.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from indexes.checked import FileFacts, saying_that_it_cannot_be_written, write_checked
from indexes.errors import DamagedIndexError, IndexFormatError, IndexStoreError
from indexes.files import CURRENT, MANIFEST, current_generation, generations, sync, write_lock
from indexes.roots import GENERATIONS, generation_file, roots_file, values_of, with_digest
from indexes.segments import SegmentFacts

FORMAT = 2
SEGMENTS = "segments"
TEMPORARY = CURRENT + ".tmp"


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """What an index was built with: a passage found later must have been encoded by the same encoder.

    roots are the files and folders that it follows, excluded the files below them that were deleted from it.
    """

    encoder: str
    dimension: int
    chunk_chars: int
    token_vectors: bool
    roots: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def encoding(self) -> tuple[str, int, int, bool]:
        """What two indexes must have in common to hold the same passages and vectors of a document."""
        return self.encoder, self.dimension, self.chunk_chars, self.token_vectors


@dataclass(frozen=True, slots=True)
class Generation:
    """A state of an index. `digest` tells it from all others."""

    number: int
    settings: IndexSettings
    segments: tuple[SegmentFacts, ...]
    digest: str = ""

    @property
    def documents(self) -> int:
        """How many documents count."""
        return sum(segment.live_documents for segment in self.segments)

    @property
    def passages(self) -> int:
        """How many passages count."""
        return sum(segment.live_passages for segment in self.segments)

    @property
    def layout(self) -> str:
        """How the vectors are kept."""
        return ", ".join(dict.fromkeys(segment.layout for segment in self.segments)) or "Flat"

    def to_bytes(self) -> bytes:
        """What is written of it: JSON after a line that holds its SHA-256."""
        values = {"format": FORMAT, "documents": self.documents, "passages": self.passages}
        return with_digest(values | {"settings": asdict(self.settings), "segments": list(map(asdict, self.segments))})


def _settings(values: dict[str, Any]) -> IndexSettings:
    return IndexSettings(**values | {key: tuple(values[key]) for key in ("roots", "excluded")})


def _segment(values: dict[str, Any]) -> SegmentFacts:
    files = {name: FileFacts(**file) for name, file in values["files"].items()}
    return SegmentFacts(**values | {"files": files, "deleted": tuple((begin, end) for begin, end in values["deleted"])})


def read_current(folder: Path) -> Generation:
    """The generation that CURRENT names.

    Raises IndexStoreError if there is none, IndexFormatError for an older one, DamagedIndexError naming the file.
    """
    while True:
        pointer = current_generation(folder)
        try:
            return _read(folder, *pointer)
        except DamagedIndexError:
            if current_generation(folder) == pointer:  # otherwise a writer replaced what was being read
                raise


def _read(folder: Path, old: Path, digest: str) -> Generation:
    path = generation_file(folder, int(old.name))
    if (old / MANIFEST).exists() and not path.exists():
        raise IndexFormatError(f"{folder.name!r} has format 1; this version reads format {FORMAT}")
    try:
        found, values = values_of(path.read_bytes())
    except OSError as error:
        raise DamagedIndexError(f"{path} is damaged: it cannot be read ({error.strerror})") from error
    if values is None or found != digest:
        raise DamagedIndexError(f"{path} is damaged: it is not what was written")
    try:
        if values["format"] != FORMAT:
            raise IndexFormatError(f"{path} has format {values['format']}; this version reads format {FORMAT}")
        segments = tuple(_segment(segment) for segment in values["segments"])
        return Generation(int(old.name), _settings(values["settings"]), segments, digest)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, IndexStoreError):
            raise
        raise DamagedIndexError(f"{path} is damaged: it does not describe an index") from error


@dataclass(slots=True)
class Change:
    """What one writer does to an index; `current` is None if there is none that could be read. number is the next
    generation's."""

    folder: Path
    current: Generation | None
    number: int = 0

    def __post_init__(self) -> None:
        taken = [*self.folder.glob(f"{GENERATIONS}/[0-9]*"), *self.folder.glob(f"{SEGMENTS}/[0-9]*")]
        self.number = 1 + max(map(_number, [*taken, *generations(self.folder)]), default=0)

    @property
    def segment_folder(self) -> Path:
        """Where the next generation's new segment is to be written."""
        return self.folder / SEGMENTS / f"{self.number:06}"

    def commit(self, settings: IndexSettings, segments: Sequence[SegmentFacts]) -> Generation:
        """Make a generation of these segments current, those left out of it that hold nothing any more."""
        made = Generation(self.number, settings, tuple(item for item in segments if item.live_documents))
        data = made.to_bytes()
        made = replace(made, digest=data.partition(b"\n")[0].decode("ascii"))
        # Before the generation, so that a first one that a kill kept from becoming current can be told from one whose
        # CURRENT is lost.
        write_checked(self.folder / TEMPORARY, f"{made.number:06} {made.digest}".encode("ascii"))
        roots = {"roots": settings.roots, "excluded": settings.excluded}
        write_checked(roots_file(self.folder, made.number), with_digest(roots))
        write_checked(generation_file(self.folder, made.number), data)
        with saying_that_it_cannot_be_written(self.folder):
            sync(self.folder / GENERATIONS)
            (self.folder / TEMPORARY).replace(self.folder / CURRENT)
        try:
            sync(self.folder)
        except OSError as error:
            raise IndexStoreError(f"{self.folder} was changed, but may not stay so ({error.strerror})") from error
        self.current, self.number = made, made.number + 1
        return made


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[Change]:
    """Be the only writer of an index. However the block is left, what is not of the current generation is removed.

    Raises IndexStoreError when somebody else writes it, or it cannot be written.
    """
    with write_lock(folder):
        _sweep(folder)
        try:
            current: Generation | None = read_current(folder)
        except IndexStoreError:
            current = None
        change = Change(folder, current)
        first = change.number
        try:
            with saying_that_it_cannot_be_written(folder):
                for part in (GENERATIONS, SEGMENTS):
                    if not (folder / part).exists():
                        (folder / part).mkdir()
                        sync(folder)
                        sync(folder.parent)
            yield change
        finally:
            _sweep(folder, first)


def _sweep(folder: Path, since: int | None = None) -> None:
    """Remove what the current generation does not use; of a damaged index only what was made `since` this number."""
    keep: set[Path] = set()
    old: list[Path] = []
    found = [*folder.glob(f"{GENERATIONS}/*"), *folder.glob(f"{SEGMENTS}/*")]
    try:
        current = read_current(folder)
    except DamagedIndexError:  # somebody may still want to look at it, or to tell its roots
        keep = {path for path in found if since is None or _number(path) < since}
    except IndexStoreError:
        pass  # there is none yet, or one of the first format, which stays until this one is current
    else:
        keep = {generation_file(folder, current.number), roots_file(folder, current.number)}
        keep |= {folder / SEGMENTS / segment.name for segment in current.segments}
        old = [*generations(folder), folder / "writing"]
    for path in [*found, folder / TEMPORARY, *old]:
        if path in keep:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _number(path: Path) -> int:
    """The number that a file or folder is called after; 0 for what is not ours."""
    name = path.name.partition(".")[0]
    return int(name) if name.isdecimal() else 0
