"""Where the passages of an answer come from, as people name it: an index, or a finder of their own.

A finder of their own is their code, run because they said so; it is imported here and nowhere else.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

from indexes.errors import FinderError, QuotewrightError, SettingError
from retrieval.conversation import Turn
from retrieval.finder import Finder, Found

if TYPE_CHECKING:
    import asyncio

    from app.answering.engine import Engine
    from retrieval.indexing import Progress

FORMS = "package.module:name or path/to/file.py:name"
KINDS = (
    "an object with find(question, top_k, turns), a LangChain vector store or retriever, "
    "or a function without arguments that makes one of these"
)


def chosen_source(engine: Engine, progress: Progress | None = None) -> Path | Finder:
    """What the settings say to ask: the finder if there is one, else the index."""
    if engine.settings.finder:
        return load_finder(engine.settings.finder)
    from indexes.store import check_name

    return index_folder(engine, check_name(engine.settings.index), progress)


def index_folder(engine: Engine, index: str | Path, progress: Progress | None = None) -> Path:
    """The folder of an index that is given by name, or by its path; the built-in one is made if it is missing."""
    if isinstance(index, Path) or os.sep in index:
        return Path(index).expanduser().absolute()
    from app.documents.indexing import build_python_docs, no_progress
    from indexes.store import check_name
    from retrieval.python_docs import PYTHON_DOCS

    if check_name(index) == PYTHON_DOCS:
        build_python_docs(engine, progress or no_progress)
    return engine.paths.indexes / index


@dataclass(frozen=True, slots=True)
class OwnFinder:
    """Somebody's own finder, called `name`: whatever it raises or returns, the error says that it was this one."""

    finder: Finder
    name: str

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """What it finds. Raises FinderError."""
        try:
            found = self.finder.find(question, top_k, turns)
        except QuotewrightError:
            raise
        except Exception as error:  # anybody's code
            raise FinderError(f"{self.name} failed: {_told(error)}") from error
        if not isinstance(found, list) or not all(isinstance(item, Found) for item in found):
            raise FinderError(f"{self.name} returned {found!r:.100}; find must return a list of retrieval.finder.Found")
        return found


def as_finder(source: object, name: str, loop: asyncio.AbstractEventLoop | None = None) -> Finder:
    """Somebody's own finder, or a source of LangChain's as one, which is searched in `loop` if there is one.

    `name` is what its errors call it. Raises SettingError for anything else.
    """
    from retrieval.finder_langchain import finder_over

    finder = finder_over(source, loop)
    if finder is not None:
        return OwnFinder(finder, name)
    if _finds(source):
        return OwnFinder(source, name)
    raise SettingError(f"{name} is a {type(source).__name__}; it must be {KINDS}")


def _finds(source: object) -> TypeGuard[Finder]:
    return callable(getattr(source, "find", None)) and not isinstance(source, type)


def load_finder(chosen: str) -> Finder:
    """The finder that somebody's own code holds or makes. Raises SettingError with what that code raises."""
    name, remedy = f"the finder {chosen!r}", f"; give {FORMS}, which must be {KINDS}"
    try:
        made = _imported(chosen)
        if callable(made) and not _finds(made):
            remedy = ""  # it is the right one, and says itself what it lacks
            made = made()
    except QuotewrightError:
        raise
    except (Exception, SystemExit) as error:  # anybody's code
        raise SettingError(f"{name} cannot be loaded: {_told(error)}{remedy}") from error
    return as_finder(made, name)


def _imported(chosen: str) -> object:
    """What a module, or a file of Python, calls so. Modules beside it, or in the working folder, can be imported."""
    where, _, name = chosen.rpartition(":")
    if not where or not name.isidentifier():
        raise SettingError(f"the finder {chosen!r} does not say where it is; give {FORMS}")
    path = Path(where).expanduser()
    is_file = where.endswith(".py") or os.sep in where
    folder = str(path.parent.absolute() if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    module = _module_of_file(path) if is_file else importlib.import_module(where)
    return getattr(module, name)


def _module_of_file(path: Path) -> ModuleType:
    module_name = f"finder_in_{path.stem}"  # no module's own name, so that none is hidden
    spec = importlib.util.spec_from_file_location(module_name, path.absolute())
    if spec is None or spec.loader is None:
        raise SettingError(f"{path} is no file of Python; its name must end with .py")
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
