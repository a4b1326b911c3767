"""The engine and the draft model of some drafters, with tiny random models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.documents.indexing import index_files
from app.setup.settings import Paths, Settings
from indexes.errors import ModelError, SettingError
from tests.app.tiny_models import write_bge_m3, write_cross_encoder, write_llama

DRAFTERS = ["draft-model", "ouroboros"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target, its encoder and reranker, a draft model with its vocabulary, and one with a token renamed."""
    folder = tmp_path_factory.mktemp("models")
    write_bge_m3(folder / "encoder")
    write_cross_encoder(folder / "reranker")
    for name in ("model", "small", "other"):
        write_llama(folder / name)
    tokenizer = folder / "other" / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('"~":', '"tilde":'))
    assert "tilde" in AutoTokenizer.from_pretrained(folder / "other").get_vocab()
    return folder


def engine(models: Path, home: Path, **choices: Any) -> Engine:
    named = {name: str(models / name) for name in ("model", "encoder", "reranker")}
    settings: dict[str, Any] = {"profile": "gpu", "device": "cpu", "max_new_tokens": 8, "stop_repeats": False}
    return Engine(Settings(**settings | named | choices), home=Paths(home / "data", home / "cache"))


def answer(made: Engine, home: Path, drafter: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text and the notes of an answer from a small index."""
    folder = made.paths.indexes / "notes"
    if not folder.exists():
        (home / "notes.txt").write_text("the lambda is a function.\n\n" * 20)
        index_files(made, folder, [home / "notes.txt"])
    *_, last = made.ask("what is lambda?", folder, options=AnswerOptions(drafter))
    assert last.stats.new_tokens == 8
    return last.text, last.notes


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_an_answer_drafted_by_a_draft_model_is_the_plain_one(models: Path, tmp_path: Path, drafter: str) -> None:
    made = engine(models, tmp_path, drafter=drafter, draft_model=str(models / "small"))
    assert answer(made, tmp_path) == answer(made, tmp_path, "plain") == (answer(made, tmp_path)[0], ())


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_without_a_draft_model_the_engine_says_at_once_which_flag_to_give(
    models: Path, tmp_path: Path, drafter: str
) -> None:
    with pytest.raises(SettingError, match=f"{drafter!r} needs a draft model; .*--draft-model ID"):
        engine(models, tmp_path, drafter=drafter)


def test_a_draft_model_that_no_drafter_needs_is_not_loaded(models: Path, tmp_path: Path) -> None:
    made = engine(models, tmp_path, drafter="token-recycling", draft_model=str(models / "not there"))
    made.load()
    assert answer(made, tmp_path)[1] == ()


def test_a_draft_model_with_another_vocabulary_is_refused_by_name(models: Path, tmp_path: Path) -> None:
    made = engine(models, tmp_path, drafter="draft-model", draft_model=str(models / "other"))
    with pytest.raises(SettingError) as caught:
        made.load()
    words = ["other has another vocabulary", str(models / "model"), "'~' and 'tilde'", "--draft-model"]
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_draft_model_that_is_not_there_is_a_model_error(models: Path, tmp_path: Path) -> None:
    made = engine(models, tmp_path, drafter="ouroboros", draft_model=str(models / "not there"))
    with pytest.raises(ModelError, match="not there"):
        made.load()
