"""Puts the figures of every size together: made or read, built, opened, searched, and how all that grows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss
import numpy as np

from benchmarks.conditions import conditions
from benchmarks.growth import fit_growth
from benchmarks.index.corpus import Corpus
from benchmarks.index.exact import nearest
from benchmarks.index.processes import apart
from benchmarks.index.real import Real, encode, read_paragraphs
from benchmarks.index.stages import TOP_K, build, open_, search
from benchmarks.index.synthetic import Synthetic
from indexes.errors import SettingError
from retrieval.indexing import Progress

if TYPE_CHECKING:
    from app.answering.engine import Engine

Line = dict[str, Any]
GROWING = ("build_s", "cpu_s", "peak_mb", "mb_on_disk", "open_s", "p50_ms", "lexical_p50_ms")
BYTES_PER_PASSAGE = 3000  # beside the vectors, and to spare


@dataclass(frozen=True, slots=True)
class Setting:
    """What to measure: numbers of vectors, and of passages of real text (or 0)."""

    vectors: Sequence[int]
    dimension: int
    real: int
    questions: int
    words: int
    probes: Sequence[int]
    threads: int
    seed: int


def run(engine: Engine, setting: Setting, scratch: Path, progress: Progress) -> dict[str, Any]:
    """Tables "indexes", "probes" and "growth". Raises SettingError where the disk has too little room."""
    _check_room(setting, scratch)
    lines, probes = [], []
    for count in sorted(setting.vectors):
        made = Synthetic(count, setting.dimension, setting.words, setting.seed)
        path = scratch / f"synthetic-{count}-{setting.dimension}-{setting.questions}-{setting.seed}.npy"
        if not path.exists():
            made.write(path, setting.questions, progress)
        lines.append(_measured("synthetic", made, path, setting, progress))
    if setting.real:
        lines.append(_real(engine, setting, scratch, progress))
    for line in lines:
        head = {key: line[key] for key in ("corpus", "passages", "dimension")}
        probes += [head | probe for probe in line.pop("probes")]
    return {
        "conditions": conditions(
            faiss=faiss.__version__, threads_of_faiss=setting.threads, questions=setting.questions, top_k=TOP_K,
            words=setting.words, seed=setting.seed,
        ),
        "indexes": lines,
        "probes": probes,
        "growth": _growth([line for line in lines if line["corpus"] == "synthetic"]),
    }  # fmt: skip


def _check_room(setting: Setting, scratch: Path) -> None:
    most = max([*setting.vectors, setting.real])
    needed, free = most * (4 * setting.dimension + BYTES_PER_PASSAGE), shutil.disk_usage(scratch).free
    if needed > free:
        raise SettingError(
            f"{most} vectors need about {needed / 1e9:.1f} GB in {scratch}, which has {free / 1e9:.1f}; name another "
            "folder with --scratch, or fewer vectors"
        )


def _real(engine: Engine, setting: Setting, scratch: Path, progress: Progress) -> Line:
    texts = read_paragraphs(setting.real + setting.questions, progress)
    order = np.random.default_rng(setting.seed).permutation(len(texts))
    path = scratch / f"real-{len(texts)}-{engine.encoder.dimension}-{setting.seed}.npy"
    drawn = [texts[place] for place in order]
    if not path.exists():
        encode(drawn, engine.encoder, path, progress)
    passages = Real(tuple(drawn[: setting.real]), engine.encoder.dimension)
    return _measured("docstrings", passages, path, setting, progress)


def _measured(name: str, made: Corpus, path: Path, setting: Setting, progress: Progress) -> Line:
    """The vectors in `path` that come after the corpus's are the questions'."""
    vectors = np.load(path, mmap_mode="r")
    asked = vectors[made.count :].astype(np.float32)
    true = nearest(vectors[: made.count], asked, TOP_K, progress)
    folder = path.with_name(f"index-{path.stem}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        line = {"corpus": name, "dimension": made.dimension}
        line |= apart(progress, build, folder, made, path)
        line |= apart(progress, open_, folder)
        line |= apart(progress, search, folder, made, asked, true, setting.probes, setting.threads)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return line


def _growth(lines: Sequence[Line]) -> list[Line]:
    """What was fitted to the columns that should grow in proportion at most: as in `benchmarks.growth`."""
    if len(lines) < 2:
        return []
    found = []
    for column in GROWING:
        fitted = fit_growth([line["passages"] for line in lines], [line[column] for line in lines])
        per_million = float(f"{fitted.per_unit * 1e6:.4g}")
        found.append({"series": column, "slope": round(fitted.slope, 3), "per_million": per_million})
    return found
