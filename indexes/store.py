"""A passage index on disk: opened for searching, and changed by adding, replacing and deleting whole documents.

A change costs in proportion to what it adds and deletes: added documents become a segment of their own, deleted ones
are marked. `indexes.maintenance` merges segments.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from indexes.errors import DamagedIndexError, IndexStoreError, SettingError
from indexes.files import CURRENT
from indexes.generations import (
    SEGMENTS,
    Change,
    Generation,
    IndexSettings,
    changing,
    read_current,
)
from indexes.live import Live, numbers
from indexes.passage_files import record_of
from indexes.passage_store import PassageStore
from indexes.passages import Document
from indexes.postings import Postings
from indexes.roots import check_roots, known_settings
from indexes.segments import ARRAYS, EncodedDocument, Segment, SegmentFacts, write_segment
from indexes.token_vectors import TokenVectors
from indexes.vectors import VectorIndex

__all__ = ["EncodedDocument", "IndexSettings", "PassageIndex", "open_index", "open_passages", "write_index"]

T = TypeVar("T")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Part = tuple[Segment, Live]


class PassageIndex:
    """An opened index. `digest` tells its generation from all others."""

    def __init__(self, folder: Path, generation: Generation, parts: Sequence[Part]) -> None:
        self.folder, self.generation, self.parts = folder, generation, parts
        self.name, self.settings, self.digest = folder.name, generation.settings, generation.digest
        self.layout = generation.layout
        self.passages = PassageStore([(segment.passages, live) for segment, live in parts])

    @functools.cached_property
    def vectors(self) -> VectorIndex:
        """The vectors of the passages."""
        return VectorIndex([(segment.search[0], live) for segment, live in self.parts])

    @functools.cached_property
    def postings(self) -> Postings:
        """The words of the passages."""
        return Postings([(segment.search[1], live) for segment, live in self.parts])

    @functools.cached_property
    def tokens(self) -> TokenVectors | None:
        """Vectors of the passages' tokens, if the index has any."""
        if not self.settings.token_vectors:
            return None
        return TokenVectors([(segment.tokens, live.offset) for segment, live in self.parts if segment.tokens])

    def holds(self, document: Document) -> bool:
        """Whether it has exactly this document."""
        record = self.passages.record(document.source)
        return record is not None and record.items() >= record_of(document).items()

    def holds_text(self, document: Document) -> bool:
        """Whether it has this document but for its title, its headings and its file's hash."""
        record, given = self.passages.record(document.source), record_of(document)
        return record is not None and all(record[key] == given[key] for key in ("text_sha256", "pages"))

    def encoded(self, source: str) -> EncodedDocument:
        """A document with its vectors, in the precision that they are stored in. Raises KeyError."""
        found = self.passages.where(source)
        if found is None:
            raise KeyError(source)
        return self.parts[found[0]][0].encoded(found[1])

    def encoded_documents(self) -> dict[str, EncodedDocument]:
        """Everything that the index holds, by source."""
        return {item.document.source: item for item in encoded(self.parts)}


def check_name(name: str, what: str = "an index") -> str:
    """The name, if it can be one. Raises SettingError."""
    if not NAME.fullmatch(name):
        raise SettingError(
            f"{name!r} cannot be the name of {what}; use up to 64 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    return name


def names(home: Path) -> list[str]:
    """The indexes below `home`."""
    found = (path.parent.name for path in home.glob(f"*/{CURRENT}"))
    return sorted(name for name in found if NAME.fullmatch(name))


def known_roots(folder: Path) -> list[str]:
    """The files and folders that an index follows, if that can still be told: a damaged one is rebuilt from them."""
    return list(known_settings(folder).get("roots", ()))


def known_excluded(folder: Path) -> list[str]:
    """The files that were deleted from an index, if that can still be told."""
    return list(known_settings(folder).get("excluded", ()))


def encoded(parts: Iterable[Part]) -> Iterator[EncodedDocument]:
    """The live documents of segments, one at a time."""
    for segment, live in parts:
        for number in live.numbers():
            yield segment.encoded(number)


def open_parts(folder: Path, generation: Generation, remedy: str = "", opened: Sequence[Part] = ()) -> tuple[Part, ...]:
    """The segments of a generation in their places; those that are `opened` already stay so."""
    known = {(segment.facts.name, segment.facts.files[ARRAYS]): segment for segment, _ in opened}
    parts: list[Part] = []
    offset = 0
    for facts in generation.segments:
        segment = known.get((facts.name, facts.files[ARRAYS]))
        if segment is None:
            segment = Segment(folder / SEGMENTS / facts.name, facts, generation.settings.dimension, remedy)
        parts.append((segment, Live.without(facts.deleted, segment.passages.first_rows, offset)))
        offset += facts.passages
    return tuple(parts)


def open_index(folder: Path, before: PassageIndex | None = None, remedy: str = "", search: bool = True) -> PassageIndex:
    """Open the current generation; segments that it shares with one opened `before` are not opened again.

    Unless it is to `search`, what only searching needs is opened later. Raises IndexStoreError, and DamagedIndexError
    naming the file, here or when a file's damaged part is first read; the latter says `remedy`.
    """

    def open_(generation: Generation) -> PassageIndex:
        check_roots(folder, generation.number)
        parts = open_parts(folder, generation, remedy, before.parts if before else ())
        for segment, _ in parts if search else ():
            segment.search  # noqa: B018
        return PassageIndex(folder, generation, parts)

    return _of_current(folder, open_)


def open_passages(folder: Path, remedy: str = "") -> PassageStore:
    """Open only the documents and passages of the current generation. Raises as `open_index` does."""
    return open_index(folder, remedy=remedy, search=False).passages


def _of_current(folder: Path, open_: Callable[[Generation], T]) -> T:
    current = read_current(folder)
    while True:
        try:
            return open_(current)
        except DamagedIndexError:
            tried, current = current, read_current(folder)
            if current.digest == tried.digest:  # otherwise a writer replaced what was being opened
                raise


def write_index(folder: Path, settings: IndexSettings, documents: Iterable[EncodedDocument]) -> Generation:
    """Write an index of exactly these documents, whatever `folder` holds."""
    with changing(folder) as change:
        return change.commit(settings, _added(change, settings, documents))


def change_index(
    before: PassageIndex,
    settings: IndexSettings,
    added: Iterable[EncodedDocument] = (),
    deleted: Collection[str] = (),
) -> Generation:
    """Delete the documents with these sources, and add or replace others; nothing else is read or written.

    `before` is the index as it is. Raises SettingError for settings of other vectors than it holds.
    """
    if before.settings.encoding != settings.encoding:
        raise SettingError(f"{before.name} was made with {before.settings}; it cannot be changed with {settings}")
    with changing(before.folder) as change:
        if change.current is None or change.current.digest != before.digest:
            raise IndexStoreError(f"{before.name} was changed by somebody else meanwhile; try again")
        sources = set(deleted)
        new = _added(change, settings, _noting(added, sources))
        return change.commit(settings, [*_without(before, sources), *new])


def _noting(documents: Iterable[EncodedDocument], sources: set[str]) -> Iterator[EncodedDocument]:
    for item in documents:
        sources.add(item.document.source)
        yield item


def _added(change: Change, settings: IndexSettings, documents: Iterable[EncodedDocument]) -> list[SegmentFacts]:
    documents = iter(documents)
    first = next(documents, None)
    if first is None:
        return []
    every = itertools.chain([first], documents)
    return [write_segment(change.segment_folder, settings.dimension, settings.token_vectors, every)]


def _without(index: PassageIndex, sources: Collection[str]) -> list[SegmentFacts]:
    """The segments of an index with the documents of these sources deleted."""
    gone: list[set[int]] = [set() for _ in index.parts]
    for part, number in filter(None, map(index.passages.where, sources)):
        gone[part].add(number)
    return [
        segment.facts_without(gone_here | numbers(facts.deleted)) if gone_here else facts
        for facts, (segment, _), gone_here in zip(index.generation.segments, index.parts, gone, strict=True)
    ]
