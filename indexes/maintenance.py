"""Keeps an index small and whole: merges segments, compares every byte, and says what there is.

Merging copies documents with their vectors into one new segment, which is trained anew if it is large, so that a
compacted index is the one that a single build of the same documents would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.checked import CheckedFile
from indexes.errors import DamagedIndexError, IndexStoreError
from indexes.generations import FORMAT, SEGMENTS, Change, Generation, changing, read_current
from indexes.roots import check_roots
from indexes.segments import SegmentFacts, write_segment
from indexes.store import encoded, open_parts

MOST_ALIKE = 8  # segments of a similar size; more are merged
TIER = 8  # times as large is no similar size
AUTOMATIC = 200_000  # passages; larger merges are made when somebody asks for them: they take minutes


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared with its checksum."""

    files: int
    bytes: int


def due(segments: Sequence[SegmentFacts]) -> list[SegmentFacts]:
    """The segments to merge now: one that is a third deleted, or the many of one size."""
    for segment in segments:
        if segment.deleted_passages * 3 > segment.passages and segment.live_passages <= AUTOMATIC:
            return [segment]
    tiers: dict[int, list[SegmentFacts]] = {}
    for segment in segments:
        tier, size = 0, segment.live_passages
        while size >= TIER:
            tier, size = tier + 1, size // TIER
        tiers.setdefault(tier, []).append(segment)
    for _, alike in sorted(tiers.items()):
        if len(alike) > MOST_ALIKE and sum(segment.live_passages for segment in alike) <= AUTOMATIC:
            return alike
    return []


def merge_due(folder: Path) -> Generation:
    """Merge what is due after a change, and give the current generation.

    The change stands already: what a full disk or damage keeps from being merged is left to whoever comes next.
    """
    current = read_current(folder)
    try:
        while due(current.segments):
            with changing(folder) as change:
                current = read_current(folder)  # others may have changed it before the lock was ours
                if chosen := due(current.segments):
                    current = _merge(change, current, chosen)
    except IndexStoreError:
        pass
    return current


def compact(folder: Path) -> Generation:
    """Make one segment of all, without what was deleted. Raises IndexStoreError."""
    read_current(folder)  # before the lock, which would make the folder
    with changing(folder) as change:
        current = read_current(folder)
        if len(current.segments) > 1 or any(segment.deleted for segment in current.segments):
            return _merge(change, current, current.segments)
        return current


def _merge(change: Change, current: Generation, chosen: Sequence[SegmentFacts]) -> Generation:
    """The merged segment takes the place of the first of them."""
    settings = current.settings
    parts = [part for part in open_parts(change.folder, current) if part[0].facts in chosen]
    made = write_segment(change.segment_folder, settings.dimension, settings.token_vectors, encoded(parts))
    left = [made if segment == chosen[0] else segment for segment in current.segments]
    return change.commit(settings, [segment for segment in left if segment not in chosen])


def verify(folder: Path) -> Verified:
    """Compare every byte of the current generation with what was written.

    Raises DamagedIndexError naming every file that differs, IndexStoreError.
    """
    current, problems = read_current(folder), []
    check_roots(folder, current.number)
    files = {folder / SEGMENTS / one.name / name: file for one in current.segments for name, file in one.files.items()}
    for path, facts in files.items():
        try:
            CheckedFile(path, facts).compare()
        except DamagedIndexError as error:
            problems.append(str(error))
    if problems and read_current(folder).digest != current.digest:
        return verify(folder)  # a writer replaced what was being read
    if problems:
        raise DamagedIndexError("; ".join(problems))
    return Verified(len(files), sum(facts.bytes for facts in files.values()))


def describe(folder: Path) -> dict[str, Any]:
    """What an index is, without reading what it holds. Raises IndexStoreError."""
    current = read_current(folder)
    settings = current.settings
    return {
        "name": folder.name,
        "format": FORMAT,
        "generation": current.number,
        "encoder": settings.encoder,
        "dimension": settings.dimension,
        "chunk_chars": settings.chunk_chars,
        "token_vectors": settings.token_vectors,
        "documents": current.documents,
        "passages": current.passages,
        "layout": current.layout,
        "bytes": size_bytes(current),
        "segments": [_described(segment) for segment in current.segments],
        "roots": list(settings.roots),
        "excluded": list(settings.excluded),
    }


def size_bytes(generation: Generation) -> int:
    """What a generation's segments take on the disk."""
    return sum(segment.bytes for segment in generation.segments)


def _described(segment: SegmentFacts) -> dict[str, Any]:
    return {
        "name": segment.name,
        "documents": segment.live_documents,
        "passages": segment.live_passages,
        "deleted_passages": segment.deleted_passages,
        "layout": segment.layout,
        "bytes": segment.bytes,
    }
