"""From settings to the words of an answer, with tiny models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.answering.engine import Engine
from app.documents.indexing import index_files
from app.setup.settings import Paths, Settings, load_settings
from decoding.sampling import GREEDY, Sampling
from indexes.errors import SettingError
from tests.app.tiny_models import write_bge_m3, write_llama


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models, and an index "notes"."""
    folder = tmp_path_factory.mktemp("sampling")
    write_llama(folder / "model")
    write_bge_m3(folder / "encoder")
    (folder / "notes.txt").write_text("the lambda is a function.\n\n" * 60)
    engine = make_engine(folder)
    index_files(engine, engine.paths.indexes / "notes", [folder / "notes.txt"])
    return folder


def make_engine(home: Path, **choices: Any) -> Engine:
    settings = Settings(
        profile="gpu", device="cpu", model=str(home / "model"), encoder=str(home / "encoder"), reranker="none",
        max_new_tokens=30, top_k=1, stop_repeats=False, **choices,
    )  # fmt: skip
    return Engine(settings, home=Paths(home / "data", home / "cache"))


def text(home: Path, **choices: Any) -> str:
    engine = make_engine(home, **choices)
    *_, answer = engine.ask("what is lambda?", engine.paths.indexes / "notes")
    return answer.text


def test_answers_are_greedy_by_default(home: Path) -> None:
    assert make_engine(home).sampling == GREEDY


def test_every_setting_of_sampling_reaches_the_engine(home: Path) -> None:
    engine = make_engine(
        home, temperature=0.7, top_p=0.9, sample_top_k=40, min_p=0.05, repetition_penalty=1.1, seed=2**63
    )
    assert engine.sampling == Sampling(0.7, 0.9, 40, 0.05, 1.1, 2**63)


def test_an_answer_varies_with_the_seed_and_not_with_the_drafter(home: Path) -> None:
    assert text(home, temperature=1.5, seed=1) != text(home, temperature=1.5, seed=2)
    assert text(home, temperature=1.5, seed=1) == text(home, temperature=1.5, seed=1, drafter="plain")
    assert text(home) != text(home, temperature=1.5, seed=1)


def test_a_value_that_cannot_be_is_refused_before_any_model_is_loaded(home: Path) -> None:
    with pytest.raises(SettingError, match=r"sampling's temperature is -1.0; allowed are 0 \(greedy\), or 0.01 to 100"):
        make_engine(home, temperature=-1)


def test_the_number_of_tokens_to_draw_from_is_not_the_number_of_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_SAMPLE_TOP_K", "7")
    monkeypatch.setenv("QUOTEWRIGHT_TOP_K", "2")
    settings = load_settings()
    assert (settings.sample_top_k, settings.resolved().top_k) == (7, 2)
    with pytest.raises(SettingError, match="sample_top_k = -1: Input should be greater than or equal to 0"):
        load_settings(sample_top_k=-1)
