"""Provenance by comparison of text: which runs of an answer stand verbatim in which passage.

Says where words stand, never why the model wrote them. Works on any model's text. A text is compared as its
words and punctuation marks (Unicode word boundaries, UAX 29), so a span never starts or ends inside a word and
white space may differ; found runs are given in characters of the answer and of the passage.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import regex

from indexes.suffix_automaton import SuffixAutomaton

MIN_WORDS = 3

_BOUNDARY = regex.compile(r"(?V1w)\b")


@dataclass(frozen=True, slots=True)
class Span:
    """answer[start:end] stands in the passage at [passage_start:passage_end], in characters."""

    start: int
    end: int
    passage_id: str
    passage_start: int
    passage_end: int

    def to_json(self) -> dict[str, int | str]:
        """The span as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Atom:
    """A word or a mark of a text, and where it stands."""

    text: str
    start: int
    end: int
    is_word: bool


def _atoms(text: str) -> list[_Atom]:
    atoms: list[_Atom] = []
    start = 0
    for piece in _BOUNDARY.split(text):
        end = start + len(piece)
        if piece.strip():
            atoms.append(_Atom(piece.strip(), end - len(piece.lstrip()), start + len(piece.rstrip()), _is_word(piece)))
        start = end
    return atoms


def _is_word(piece: str) -> bool:
    return any(character.isalnum() for character in piece)


@dataclass(frozen=True, slots=True, order=True)
class _Run:
    """Answer atoms [first, last) = passage atoms up to `passage_last`; ordered best first."""

    minus_length: int
    rank: int
    first: int
    last: int
    passage_last: int


class Tracer:
    """Finds spans in answers that may use these passages, best-ranked first: (id, text) pairs.

    Prepared once per question; `spans` may be called for every state of a growing answer.
    """

    def __init__(self, passages: Sequence[tuple[str, str]], min_words: int = MIN_WORDS) -> None:
        self._ids = [passage_id for passage_id, _ in passages]
        self._atoms = [_atoms(text) for _, text in passages]
        self._automata = [SuffixAutomaton(atom.text for atom in atoms) for atoms in self._atoms]
        self._min_words = max(1, min_words)

    def spans(self, answer: str) -> list[Span]:
        """The answer's maximal runs of at least `min_words` words, in order and without overlap.

        Where runs overlap the longest wins, then the one in the best-ranked passage; what is left of the other
        counts if it still is long enough.
        """
        atoms = _atoms(answer)
        words = [0]
        for atom in atoms:
            words.append(words[-1] + atom.is_word)
        heap = [run for rank in range(len(self._ids)) for run in self._runs(atoms, rank)]
        heapq.heapify(heap)
        taken: list[_Run | None] = [None] * len(atoms)
        chosen: list[_Run] = []
        while heap:
            run = heapq.heappop(heap)
            if words[run.last] - words[run.first] < self._min_words:
                continue
            rest = _rest(run, taken, atoms)
            if rest is run:
                taken[run.first : run.last] = [run] * (run.last - run.first)
                chosen.append(run)
            elif rest:
                heapq.heappush(heap, rest)
        return [self._span(run, atoms) for run in sorted(chosen, key=lambda run: run.first)]

    def _runs(self, atoms: list[_Atom], rank: int) -> Iterator[_Run]:
        """Maximal runs in one passage: matches that the next atom does not lengthen."""
        matches = list(self._automata[rank].longest_suffixes(atom.text for atom in atoms))
        for last, (length, passage_last) in enumerate(matches, start=1):
            if length and (last == len(matches) or matches[last][0] != length + 1):
                yield _make_run(atoms, rank, last - length, last, passage_last)

    def _span(self, run: _Run, atoms: list[_Atom]) -> Span:
        passage = self._atoms[run.rank]
        first = run.passage_last - (run.last - run.first)
        return Span(
            atoms[run.first].start,
            atoms[run.last - 1].end,
            self._ids[run.rank],
            passage[first].start,
            passage[run.passage_last - 1].end,
        )


def _make_run(atoms: list[_Atom], rank: int, first: int, last: int, passage_last: int) -> _Run:
    return _Run(atoms[first].start - atoms[last - 1].end, rank, first, last, passage_last)


def _rest(run: _Run, taken: list[_Run | None], atoms: list[_Atom]) -> _Run | None:
    """What better runs have left of a run: all, one piece or nothing.

    Never two pieces, for a better run is at least as long and cannot lie strictly inside; so each end is cut at
    most once, and tracing takes no more than a heap's time in the number of runs.
    """
    before, after = taken[run.first], taken[run.last - 1]
    if before is None and after is None:
        return run
    first = before.last if before else run.first
    last = after.first if after else run.last
    return _make_run(atoms, run.rank, first, last, run.passage_last - (run.last - last)) if first < last else None


def copied_fraction(answer: str, spans: Sequence[Span]) -> float:
    """The share of the answer's characters, white space aside, that lie in spans; 0 for an empty answer."""
    total = sum(not character.isspace() for character in answer)
    inside = sum(not character.isspace() for span in spans for character in answer[span.start : span.end])
    return inside / total if total else 0.0
