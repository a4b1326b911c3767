from __future__ import annotations

from pathlib import Path

import pytest

from app.engine import Engine
from app.indexing import no_progress
from app.settings import Paths, Settings, paths
from app.uploads import add_uploads, new_token, private_index
from indexes.errors import NothingToIndexError, SettingError
from indexes.store import open_index
from tests.hash_encoder import HashEncoder

TOKEN = "0" * 32


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(Settings(), home=Paths(tmp_path / "data", paths().cache))
    made.encoder = HashEncoder()
    return made


def _upload(engine: Engine, folder: Path, **files: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return add_uploads(engine, TOKEN, [folder / f"{name}.txt" for name in files], no_progress).skipped


def _kept(engine: Engine) -> list[str]:
    return sorted(file.name for file in (engine.paths.uploads / TOKEN / "uploads").iterdir())


def test_unreadable_uploads_are_listed_by_name_and_not_kept(engine: Engine, tmp_path: Path) -> None:
    assert _upload(engine, tmp_path / "in", good="some words", empty="") == {"empty.txt": "empty"}
    assert _kept(engine) == ["good.txt"]


def test_when_nothing_can_be_read_nothing_is_kept(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NothingToIndexError):
        _upload(engine, tmp_path / "in", empty="")
    assert _kept(engine) == []


def test_uploads_add_up(engine: Engine, tmp_path: Path) -> None:
    _upload(engine, tmp_path / "in", first="one text")
    _upload(engine, tmp_path / "in", second="another text")
    assert len(open_index(private_index(engine, TOKEN)).passages) == 2


@pytest.mark.parametrize("token", ["", "..", "../" * 11, "G" * 32, None])
def test_what_is_no_token_opens_no_folder(engine: Engine, token: str) -> None:
    with pytest.raises(SettingError, match="reload the page"):
        private_index(engine, token)


def test_tokens_differ() -> None:
    assert new_token() != new_token()
