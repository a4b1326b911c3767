"""Finders that people bring: code of their own in files and modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.answering.sources import OwnFinder, as_finder, chosen_source, index_folder, load_finder
from app.setup.settings import Paths, Settings
from indexes.errors import FinderError, SettingError
from retrieval.finder import given

OWN = """
from dataclasses import dataclass
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from retrieval.finder import given
from beside import TEXT

@dataclass
class Notes:
    def find(self, question, top_k, turns=()):
        return given([TEXT, question]).find(question, top_k)

kept = Notes()
chain = RunnableLambda(lambda question: [Document(TEXT)])
number = 3
def made(): return Notes()
def fails(): raise ConnectionError("no route")
def ends(): raise SystemExit(3)
def nothing(): return None
def asks(question): return []
class Wrong:
    def find(self, question, top_k, turns=()): return ["text"]
class Breaks:
    def find(self, question, top_k, turns=()): raise KeyError("shard")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with somebody's code."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "beside.py").write_text("TEXT = 'the lamp is red'")
    (tmp_path / "broken.py").write_text("def f(:")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("own", "beside"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize("where", ["own.py", "./own.py", "own"])
@pytest.mark.parametrize("name", ["kept", "made", "Notes", "chain"])
def test_a_file_or_a_module_holds_a_finder_or_what_makes_one(where: str, name: str) -> None:
    found = load_finder(f"{where}:{name}").find("why?", 2)
    assert found[0].passage.text == "the lamp is red"


def test_a_file_is_found_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert len(load_finder(f"{folder}/own.py:kept").find("why?", 2)) == 2


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("own.py", "does not say where it is; give package.module:name or path/to/file.py:name"),
        ("own.py:", "does not say where it is"),
        (":kept", "does not say where it is"),
        ("own.py:no such", "does not say where it is"),
        ("own.py:none", "cannot be loaded: AttributeError: .* has no attribute 'none'; give package.module:name"),
        ("none.py:kept", "cannot be loaded: FileNotFoundError"),
        ("no.such.module:kept", "cannot be loaded: ModuleNotFoundError: No module named 'no'"),
        ("broken.py:f", "cannot be loaded: SyntaxError"),
        ("./own:kept", "own is no file of Python"),
        ("own.py:fails", "cannot be loaded: ConnectionError: no route$"),
        ("own.py:ends", "cannot be loaded: SystemExit: 3"),
        ("own.py:asks", "cannot be loaded: TypeError"),
        ("own.py:nothing", "is a NoneType; it must be an object with find"),
        ("own.py:number", "is a int; it must be"),
    ],
)
def test_what_is_no_finder_is_refused_by_name(chosen: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        load_finder(chosen)


def test_a_finder_that_breaks_is_named() -> None:
    with pytest.raises(FinderError, match=r"the finder 'own.py:Breaks' failed: KeyError: 'shard'"):
        load_finder("own.py:Breaks").find("why?", 2)


def test_a_finder_that_finds_other_things_is_named() -> None:
    with pytest.raises(FinderError, match=r"'own.py:Wrong' returned \['text'\]; find must return a list of"):
        load_finder("own.py:Wrong").find("why?", 2)


def test_an_error_for_people_stays_what_it_is() -> None:
    class Strict:
        def find(self, question: str, top_k: int, turns: object = ()) -> list[object]:
            raise SettingError("top_k is 3")

    with pytest.raises(SettingError, match=r"^top_k is 3$"):
        as_finder(Strict(), "mine").find("why?", 3)


def test_the_settings_choose_the_finder_or_else_the_index(tmp_path: Path) -> None:
    def engine(**choices: str) -> Engine:
        return Engine(Settings(device="cpu", **choices), home=Paths(tmp_path / "data", tmp_path / "cache"))  # type: ignore[arg-type]

    assert isinstance(chosen_source(engine(finder="own.py:kept", index="notes")), OwnFinder)
    assert chosen_source(engine(index="notes")) == tmp_path / "data" / "indexes" / "notes"


def test_an_index_with_a_slash_is_a_folder(tmp_path: Path) -> None:
    engine = Engine(Settings(device="cpu"), home=Paths(tmp_path / "data", tmp_path / "cache"))
    assert index_folder(engine, "here/notes") == tmp_path / "here" / "notes"
    assert index_folder(engine, Path("notes")) == tmp_path / "notes"


def test_given_passages_are_a_finder_as_they_are() -> None:
    assert as_finder(given(["a"]), "mine").find("why?", 1) == given(["a"]).find("why?", 1)
