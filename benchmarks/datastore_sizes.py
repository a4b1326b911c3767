"""Datastores' bytes on disk against simulated accept length: REST and CREST from the same corpus (crest sec. 5.2).

Three sets of texts that share nothing: the corpus of the stores, the texts that are replayed and reported, and others
on which the CREST store of the comparison is chosen. MT-Bench answers change these parts by turns, so that every
answer is reported once; of Python sources there is one division (python_sources.py). The rungs of each ladder are set
by the corpus' tokens alone.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from benchmarks.fitting import folds
from benchmarks.python_sources import read_sources
from benchmarks.recorded import Recorded, read_recorded, text_encoder
from benchmarks.simulate import Replayed, replay
from decoding.drafter import Drafter
from decoding.drafters.crest import CrestDrafter
from decoding.drafters.rest import RestDrafter
from decoding.tokenizer_hash import tokenizer_hash
from indexes.corpus import Progress, no_progress
from indexes.crest import CrestStore
from indexes.crest_build import CrestSettings, build_crest, compact
from indexes.datastore import size_bytes
from indexes.errors import SettingError
from indexes.suffix_array import RestStore, build_rest

FOLDS = 5
REPLAYED, LONGEST = 100, 400  # files of Python that are replayed, and tokens of each
TENTH = 10
LOOKUPS = 1000

REST_SHARES = (16, 8, 4, 2, 1)  # the corpus divided by these
PAPER = (2000, 500, 125)  # n-grams for each n: the corpus' tokens divided by these
COMMON = (800, 200, 50)
BYTES = (40, 20, TENTH, 5)  # REST's bytes divided by these
MANIFEST = 1024  # bytes; a manifest has fewer
CANDIDATES = 32  # for each n, the corpus' tokens divided by this are weighed

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Division:
    """The texts of one turn, as tokens."""

    corpus: Sequence[Tokens]
    reported: Sequence[Tokens]
    chosen_on: Sequence[Tokens]


@dataclass(slots=True)
class Line:
    """One rung of a ladder; bytes and replays per turn, `settings` those of the first turn."""

    kind: str
    settings: dict[str, Any]
    bytes: list[int] = field(default_factory=list)
    reported: list[Replayed] = field(default_factory=list)
    chosen_on: list[Replayed] = field(default_factory=list)
    lookup_s: list[float] = field(default_factory=list)
    build_s: float = 0.0


def run(
    tokenizer: Any, answers: Path, python_sources: bool = False, limit_bytes: int = 8 * 10**6, max_nodes: int = 32,
    progress: Progress = no_progress,
) -> dict[str, Any]:  # fmt: skip
    """Stores of every size and what they are worth. Raises SettingError for too few answers."""

    encode = text_encoder(tokenizer)
    corpora: list[tuple[str, list[Division]]] = [(answers.name, _turns(read_recorded(answers, encode), answers))]
    about: dict[str, Any] = {"data": answers.name, "folds": FOLDS, "max_nodes": max_nodes}
    if python_sources:
        sources = read_sources(limit_bytes, REPLAYED, progress)
        about |= {"python_bytes": limit_bytes, "packages": sources.packages}
        parts = [[tuple(encode(text)) for text in texts] for texts in (sources.reported, sources.chosen_on)]
        reported, chosen_on = ([text[:LONGEST] for text in part if len(text) > 1] for part in parts)
        corpus = [tuple(encode(text)) for text in sources.corpus]
        corpora.append(("Python sources", [Division(corpus, reported, chosen_on)]))
    stores, comparison = [], []
    for name, turns in corpora:
        about[f"tokens of {name}"] = sum(len(text) for text in turns[0].corpus)
        ladder = _measured(name, turns, tokenizer_hash(tokenizer), len(tokenizer), max_nodes, progress)
        stores += [_figures(name, line) for line in ladder]
        comparison.append(compare(name, ladder))
    return {"conditions": conditions(**about), "stores": stores, "comparison": comparison}


def _turns(examples: Sequence[Recorded], path: Path) -> list[Division]:
    """Every conversation reported once: first turns of the others are corpus, but for a fold to choose on."""
    parts = [[examples[index] for index in indices] for indices in folds(examples, FOLDS)]
    if not all(parts):
        raise SettingError(f"{path} has {sum(map(bool, parts))} conversations; {FOLDS} are needed")
    return [
        Division(
            [
                one.answer
                for at, part in enumerate(parts)
                if at not in (turn, (turn + 1) % FOLDS)
                for one in part
                if not one.references
            ],
            [one.answer for one in parts[turn]],
            [one.answer for one in parts[(turn + 1) % FOLDS]],
        )
        for turn in range(FOLDS)
    ]


def _rungs(tokens: int, rest_bytes: int) -> Iterator[tuple[str, CrestSettings, bool]]:
    """(kind, settings, whether trees are grown) of CREST's ladders, by the corpus' tokens and REST's bytes."""
    for part in PAPER:
        yield "crest, paper", CrestSettings(size=max(1, tokens // part)), False
    for part in COMMON:
        yield "crest, common", CrestSettings(size=max(1, tokens // part), nodes=12, depth=1), True
    for part in BYTES:
        settings = CrestSettings(size=max(1, tokens // CANDIDATES))
        yield "crest, telling", compact(settings, max(MANIFEST // 2, rest_bytes // part - MANIFEST)), True


def _measured(
    name: str, turns: Sequence[Division], hashed: str, vocabulary: int, max_nodes: int, progress: Progress
) -> list[Line]:
    """All rungs, REST's first, the whole corpus last of these."""
    ladder: list[Line] = []
    done, total = 0, len(turns) * (len(REST_SHARES) + len(PAPER) + len(COMMON) + len(BYTES))

    def measure(at: int, kind: str, settings: CrestSettings | int, grow: bool, division: Division) -> int:
        nonlocal done
        progress(f"Stores of {name}", done, total)
        if at == len(ladder):
            ladder.append(Line(kind, {"share": 1 / settings} if isinstance(settings, int) else asdict(settings)))
        line, began = ladder[at], time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            drafter: RestDrafter | CrestDrafter
            if isinstance(settings, int):
                texts = division.corpus[: max(1, len(division.corpus) // settings)]
                build_rest(Path(folder, "s"), texts, hashed, vocabulary)
                drafter = RestDrafter(RestStore(Path(folder, "s"), hashed))
            else:
                build_crest(Path(folder, "s"), division.corpus, hashed, vocabulary, settings)
                drafter = CrestDrafter(CrestStore(Path(folder, "s"), hashed), grow)
            line.build_s += time.perf_counter() - began
            line.bytes.append(size_bytes(Path(folder, "s")))
            line.reported.append(_replayed(drafter, division.reported, max_nodes))
            line.lookup_s += _looked_up(drafter.store, division.reported)
            if kind != "rest":
                line.chosen_on.append(_replayed(drafter, division.chosen_on, max_nodes))
        done += 1
        return line.bytes[-1]

    for division in turns:
        rest_bytes, at = 0, itertools.count()
        for share in REST_SHARES:
            rest_bytes = measure(next(at), "rest", share, False, division)
        for kind, settings, grow in _rungs(sum(map(len, division.corpus)), rest_bytes):
            measure(next(at), kind, settings, grow, division)
    progress(f"Stores of {name}", total, total)
    return ladder


def _replayed(drafter: Drafter, texts: Sequence[Tokens], max_nodes: int) -> Replayed:
    sums = Replayed()
    for text in texts:
        replay(drafter, Recorded((), text), max_nodes, sums)
    return sums


def _looked_up(store: RestStore | CrestStore, texts: Sequence[Tokens]) -> list[float]:
    """What each of LOOKUPS look-ups took, at places spread over the texts."""
    places = [(text, end) for text in texts for end in range(1, len(text))]
    took = []
    for text, end in places[:: -(-len(places) // LOOKUPS)]:
        context, began = text[max(0, end - 16) : end], time.perf_counter()
        store.lookup(context)
        took.append(time.perf_counter() - began)
    return took


def _accept_length(replays: Sequence[Replayed]) -> float:
    return sum(one.tokens for one in replays) / max(1, sum(one.steps for one in replays))


def _figures(name: str, line: Line) -> dict[str, Any]:
    """The line of a table; bytes are the mean over turns."""
    propose = [took for one in line.reported for took in one.propose_s]
    steps = sum(one.steps for one in line.reported)
    return {
        "corpus": name,
        "kind": line.kind,
        "settings": line.settings,
        "bytes": round(statistics.mean(line.bytes)),
        "tokens_per_step": round(_accept_length(line.reported), 3),
        "nodes_per_step": round(sum(one.nodes for one in line.reported) / max(1, steps), 1),
        "lookup_us_median": round(1e6 * statistics.median(line.lookup_s), 1),
        "propose_us_median": round(1e6 * statistics.median(propose), 1),
        "build_s": round(line.build_s, 1),
    }


def compare(name: str, ladder: Sequence[Line]) -> dict[str, Any]:
    """REST of the whole corpus against the CREST store of a tenth of its bytes, chosen turn by turn on other texts."""
    rest = [line for line in ladder if line.kind == "rest"][-1]
    picked: list[Line] = []
    for turn, whole in enumerate(rest.bytes):
        small = [line for line in ladder if line.kind != "rest" and TENTH * line.bytes[turn] <= whole]
        if not small:
            return {"corpus": name, "says": f"No CREST store takes a tenth of REST's {whole} bytes or less."}
        picked.append(max(small, key=lambda line: _accept_length([line.chosen_on[turn]])))
    ours, theirs = _accept_length([line.reported[at] for at, line in enumerate(picked)]), _accept_length(rest.reported)
    share = sum(line.bytes[at] for at, line in enumerate(picked)) / sum(rest.bytes)
    per_cent = 100 * (ours / theirs - 1)
    verdict = "keeps at least REST's accept length" if per_cent >= 0 else "falls short of REST's accept length"
    return {
        "corpus": name,
        "says": f"CREST at {100 * share:.1f} % of REST's bytes {verdict}: {ours:.3f} against {theirs:.3f} tokens per "
        f"step, {per_cent:+.1f} %.",
        "rest_bytes": round(statistics.mean(rest.bytes)),
        "rest_tokens_per_step": round(theirs, 3),
        "crest_bytes": round(statistics.mean(line.bytes[at] for at, line in enumerate(picked))),
        "crest_tokens_per_step": round(ours, 3),
        "difference_per_cent": round(per_cent, 1),
        "crest": sorted({line.kind for line in picked}),
    }
