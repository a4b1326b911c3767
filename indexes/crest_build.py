"""Builds CREST's datastore (crest sec. 4.2): the t most common n-grams for each n up to m, each with its token tree.

Texts may be larger than memory: corpus_passes.py takes them a million places at a time, sorted, so that every n-gram,
and every prefix of its continuations, is one run of rows. A first round counts the n-grams, a second makes the trees
of those kept.

Beyond the paper: an n-gram whose tree is that of its own end (the n-gram without its first token) is left out, since a
lookup that backs off finds the same; `least` leaves out continuations that were seen too seldom; and `limit_bytes`
keeps of all these n-grams those that tell most per byte (crest_selection.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from indexes.corpus import Corpus, Progress, Rows, encode_ids, no_progress, write_corpus
from indexes.corpus_passes import Pass, find_places, plan_passes, runs, sorted_rows
from indexes.crest import BUCKETS, KIND, MAX_DEPTH, MAX_NGRAM, MAX_NODES, RECORDS, pack_record
from indexes.crest_records import RecordWriter
from indexes.datastore import writing_store
from indexes.errors import SettingError
from indexes.prefix_tree import NO_TREE, TokenTree, frequent_prefixes

MOST = 5000  # continuations merged into one tree
MAX_COUNT = 2**20  # n-grams more frequent than this are told apart no further


@dataclass(frozen=True, slots=True)
class CrestSettings:
    """What a CREST datastore holds: the `size` (t) most common n-grams for each n up to `max_ngram` (m).

    A tree has up to `nodes` nodes and `depth` levels; no node that was seen less than `least` times. With `limit_bytes`
    those n-grams are kept that tell most, as many as fit into so many bytes on disk, the manifest not counted.
    """

    size: int = 100_000
    max_ngram: int = 4
    nodes: int = MAX_NODES
    depth: int = 10
    least: int = 1
    limit_bytes: int | None = None

    def __post_init__(self) -> None:
        limits = {"size": 2**32, "max_ngram": MAX_NGRAM, "nodes": MAX_NODES, "depth": MAX_DEPTH, "least": MAX_COUNT}
        limits |= {"limit_bytes": 2**32} if self.limit_bytes is not None else {}
        for name, most in limits.items():
            if not 1 <= getattr(self, name) <= most:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be 1 to {most}")


DEFAULTS = CrestSettings()


def compact(settings: CrestSettings, limit_bytes: int) -> CrestSettings:
    """These settings with flat trees, from which deep ones are grown while drafting, in so many bytes."""
    return replace(settings, nodes=min(settings.nodes, 24), depth=1, limit_bytes=limit_bytes)


def build_crest(
    folder: Path,
    texts: Iterable[Sequence[int]],
    tokenizer_hash: str,
    vocabulary: int,
    settings: CrestSettings = DEFAULTS,
    progress: Progress = no_progress,
) -> None:
    """Write a CREST datastore of these texts into `folder`, in place of what it held.

    Raises SettingError for an id outside [0, vocabulary), NothingToIndexError for texts without a continuation.
    """
    with writing_store(folder, KIND, tokenizer_hash, vocabulary) as (draft, values):
        text, order = draft / "text", draft / "order"
        write_corpus(text, texts, vocabulary)
        corpus = Corpus(text, vocabulary)
        passes = list(plan_passes(corpus))
        kept = _count(corpus, order, passes, settings, progress)
        with RecordWriter(draft, corpus.width) as records:
            for key, tree, seen in _trees(corpus, order, passes, kept, settings, progress):
                records.add(key, pack_record(key, tree, corpus.width), seen)
            entries = records.write(draft / BUCKETS, draft / RECORDS, progress, settings.limit_bytes)
        text.unlink()
        order.unlink()
        values |= {"entries": entries, "max_ngram": settings.max_ngram, "size": settings.size}
        values |= {"nodes": settings.nodes, "depth": settings.depth, "least": settings.least}
        values |= {"limit_bytes": settings.limit_bytes}


@dataclass(slots=True)
class _Kept:
    """For each n the n-grams that are kept: those seen `often` times or more, and `ties` of those seen once less."""

    often: list[int] = field(default_factory=lambda: [0])
    ties: list[int] = field(default_factory=lambda: [0])

    def take(self, n: int, seen: int) -> bool:
        """Whether an n-gram is kept that was seen so many times."""
        seen = min(seen, MAX_COUNT)
        if seen == self.often[n] - 1 and self.ties[n] > 0:
            self.ties[n] -= 1
            return True
        return seen >= self.often[n]


def _count(corpus: Corpus, order: Path, passes: list[Pass], settings: CrestSettings, progress: Progress) -> _Kept:
    """Count all n-grams, and leave the places of every pass, sorted, in the file `order`."""
    m, done = settings.max_ngram, 0
    histogram = np.zeros((m + 1, MAX_COUNT + 2), np.int64)  # the last stands for no n-gram
    with order.open("wb") as file:
        for chosen in passes:
            places, rows = sorted_rows(corpus, find_places(corpus, chosen), m + settings.depth)
            file.write(places.astype("<i8").tobytes())
            for n in range(1, m + 1):
                lengths = runs(rows, n)[1]
                if n == 1 and chosen.parts > 1:
                    lengths = np.array([chosen.total] if chosen.is_last else [], np.int64)
                histogram[n, : MAX_COUNT + 1] += np.bincount(np.minimum(lengths, MAX_COUNT), minlength=MAX_COUNT + 1)
            done += len(places)
            progress("Counting n-grams", done, corpus.length)
    progress("Counting n-grams", corpus.length, corpus.length)
    kept = _Kept()
    for n in range(1, m + 1):
        as_often = np.cumsum(histogram[n][::-1])[::-1]  # how many n-grams were seen so often or more
        often = max(1, int(np.argmax(as_often <= settings.size)))
        kept.often.append(often)
        kept.ties.append(settings.size - int(as_often[often]))
    return kept


def _trees(
    corpus: Corpus, order: Path, passes: list[Pass], kept: _Kept, settings: CrestSettings, progress: Progress
) -> Iterator[tuple[bytes, TokenTree, int]]:
    """Every n-gram that is kept, as bytes, with its tree, and how often it was seen."""
    width, done = settings.max_ngram + settings.depth, 0
    with order.open("rb") as file:
        for chosen in passes:
            places = np.frombuffer(file.read(8 * chosen.places), "<i8").astype(np.int64)
            rows = corpus.windows(places, width)
            for n in range(1, settings.max_ngram + 1):
                if n == 1 and chosen.parts > 1:
                    if chosen.is_last and kept.take(1, chosen.total):
                        sample = _sample_of_all(corpus, chosen, width)
                        yield from _tree(sample, 1, corpus.width, settings, chosen.total)
                    continue
                for start, length in zip(*(column.tolist() for column in runs(rows, n)), strict=True):
                    if kept.take(n, length):
                        step = -(-length // MOST)
                        yield from _tree(rows[start : start + length : step], n, corpus.width, settings, length)
            done += len(places)
            progress("Making trees", done, corpus.length)
    progress("Making trees", corpus.length, corpus.length)


def _sample_of_all(corpus: Corpus, chosen: Pass, width: int) -> Rows:
    """Sorted rows of a token whose places lie in several passes."""
    places = find_places(corpus, replace(chosen, part=0, parts=1))
    return sorted_rows(corpus, places[:: -(-len(places) // MOST)], width)[1]


def _tree(rows: Rows, n: int, width: int, settings: CrestSettings, seen: int) -> Iterator[tuple[bytes, TokenTree, int]]:
    """The n-gram that all rows begin with, and the tree of what follows it, unless that was all seen too seldom."""
    followed = rows[rows[:, n] != 0, n : n + settings.depth]
    tree = frequent_prefixes(followed, settings.nodes, settings.least) if len(followed) else NO_TREE
    if len(tree):
        yield encode_ids(rows[0, :n] - 1, width), tree, seen
