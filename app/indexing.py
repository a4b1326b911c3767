"""Builds indexes for people: the built-in corpus, and their own files under a name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.engine import Engine
from indexes.errors import IndexStoreError, NothingToIndexError, SettingError
from indexes.files import write_lock
from indexes.store import check_name, known_roots
from retrieval.indexing import Progress, Report, build_index, read_files
from retrieval.python_docs import PYTHON_DOCS, python_docs


def no_progress(what: str, done: int, total: int) -> None:
    """The default for `progress`."""


def build_python_docs(engine: Engine, progress: Progress = no_progress, rebuild: bool = False) -> Report | None:
    """Index the built-in corpus; None if it is there already."""
    folder = engine.paths.indexes / PYTHON_DOCS
    if not rebuild:
        try:
            engine.open(folder)
            return None
        except IndexStoreError:
            pass  # missing, damaged, or made with another encoder: it can always be made anew
    with write_lock(folder):
        return build_index(folder, engine.index_settings(), python_docs(), engine.encoder, progress, rebuild)


def index_files(
    engine: Engine,
    folder: Path,
    given: Sequence[Path],
    progress: Progress = no_progress,
    rebuild: bool = False,
) -> Report:
    """Bring the index in `folder` up to date with its files and folders, and with those given now.

    Paths add up over calls; files that are gone are dropped from the index. `rebuild` encodes everything again.
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
        roots = [*map(Path, known_roots(folder)), *given]
        return _index_roots(engine, folder, list(dict.fromkeys(root.resolve() for root in roots)), progress, rebuild)


def _index_roots(engine: Engine, folder: Path, roots: list[Path], progress: Progress, rebuild: bool) -> Report:
    skipped: dict[str, str] = {}
    documents = read_files([root for root in roots if root.exists()], skipped, progress)
    if not documents:
        reasons = "".join(f"\n  {file}: {reason}" for file, reason in skipped.items()) or "\n  no supported files there"
        raise NothingToIndexError(f"none of the files could be read, so nothing was indexed:{reasons}")
    settings = engine.index_settings([str(root) for root in roots])
    report = build_index(folder, settings, documents, engine.encoder, progress, rebuild)
    report.skipped = skipped
    return report
