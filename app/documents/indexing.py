"""Builds indexes for people: the built-in corpus, and their own files under a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from indexes.errors import IndexStoreError, NothingToIndexError, SettingError
from indexes.files import write_lock
from indexes.passages import Document
from indexes.store import check_name, known_excluded, known_roots
from retrieval.indexing import Progress, Report, build_index, read_files
from retrieval.python_docs import PYTHON_DOCS, python_docs
from retrieval.workers import Workers, read_here

if TYPE_CHECKING:
    from app.answering.engine import Engine


def no_progress(what: str, done: int, total: int) -> None:
    """The default for `progress`."""


def build_python_docs(
    engine: Engine, progress: Progress = no_progress, rebuild: bool = False, workers: Workers | None = None
) -> Report | None:
    """Index the built-in corpus; None if it is there already."""
    folder = engine.paths.indexes / PYTHON_DOCS
    if not rebuild:
        try:
            engine.open(folder)
            return None
        except IndexStoreError:
            pass  # missing, damaged, old, or made with another encoder: it can always be made anew
    with write_lock(folder):
        return build_index(folder, engine.index_settings(), python_docs(), engine.encoder, progress, rebuild, workers)


def index_files(
    engine: Engine,
    folder: Path,
    given: Sequence[Path],
    progress: Progress = no_progress,
    rebuild: bool = False,
    known: Mapping[str, Document] = MappingProxyType({}),
    workers: Workers | None = None,
) -> Report:
    """Bring the index in `folder` up to date with its files and folders, and with those given now.

    Paths add up over calls; files that are gone are dropped from the index. One that was deleted from the index
    stays out until it is given by its own name. `rebuild` encodes everything again. `known` are documents, by source,
    that were read already; `workers` read, chunk and encode, this process if there are none.
    Raises NothingToIndexError when no file can be read, listing why; SettingError when there is no path at all.
    """
    check_name(folder.name)
    if folder.name == PYTHON_DOCS:
        raise SettingError(f"{PYTHON_DOCS!r} is the built-in corpus; choose another name")
    missing = [path for path in given if not path.exists()]
    if missing:
        raise SettingError(f"there is no file or folder {', '.join(map(repr, map(str, missing)))}")
    if not given and not known_roots(folder):
        raise SettingError("nothing to index: give files or folders, as in: python app.py index notes/ --name notes")
    with write_lock(folder):
        resolved = [path.resolve() for path in given]
        roots = list(dict.fromkeys([*(Path(root).resolve() for root in known_roots(folder)), *resolved]))
        named = {*resolved, *(path.absolute() for path in given)}
        excluded = {file: None for file in known_excluded(folder) if Path(file) not in named}
        skipped: dict[str, str] = {}
        present = [root for root in roots if root.exists()]
        documents = read_files(present, skipped, progress, excluded, known, workers.read if workers else read_here)
        if not documents:
            raise NothingToIndexError(_reasons(skipped, excluded))
        settings = replace(engine.index_settings(list(map(str, roots))), excluded=tuple(excluded))
        report = build_index(folder, settings, documents, engine.encoder, progress, rebuild, workers)
    report.skipped, report.excluded = skipped, sum(Path(file).exists() for file in excluded)
    return report


def _reasons(skipped: Mapping[str, str], excluded: Iterable[str]) -> str:
    lines = [f"{file}: {reason}" for file, reason in skipped.items()]
    lines += [f"{file}: was deleted from the index; give it by name to have it again" for file in excluded]
    return "\n  ".join(
        ["none of the files could be read, so nothing was indexed:", *(lines or ["no supported files there"])]
    )
