"""Plain and drafted decoding side by side, with tiny models."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.answering.race import race
from app.setup.settings import Paths, Settings
from retrieval.conversation import NOTHING_FOUND
from retrieval.finder import given
from tests.app.tiny_models import write_bge_m3, write_llama

QUESTION = "what is lambda?"
PASSAGES = given(["the lambda is a function." * 3])


def make_engine(folder: Path, target: str) -> Engine:
    settings = Settings(
        profile="gpu", device="cpu", model=str(folder / "model"), encoder=str(folder / "encoder"), reranker="none",
        max_new_tokens=60, top_k=1, stop_repeats=False, target=target, dtype="float32",
    )  # fmt: skip
    return Engine(settings, home=Paths(folder / "data", folder / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("race")
    write_llama(folder / "model")
    write_bge_m3(folder / "encoder")
    return folder


@pytest.mark.parametrize("target", ["pytorch", "general"])
@pytest.mark.parametrize("turn_s", [0.0001, 10.0])
def test_both_lanes_write_the_answer_that_is_written_alone(
    folder: Path, target: str, turn_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.answering.race.TURN_S", turn_s)
    engine = make_engine(folder, target)
    *_, alone = engine.ask(QUESTION, PASSAGES)
    *_, last = race(engine, QUESTION, PASSAGES)
    assert last.plain.answer.text == last.drafted.answer.text == alone.text
    assert (last.plain.answer.stats.drafter, last.drafted.answer.stats.drafter) == ("plain", "blend")
    assert last.plain.answer.stats.accept_length == 1.0
    assert last.speed_up == last.plain.elapsed_s / last.drafted.elapsed_s


def test_the_lanes_take_turns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.answering.race.TURN_S", 0.0001)
    states = list(race(make_engine(folder, "pytorch"), QUESTION, PASSAGES))
    ended = next(index for index, state in enumerate(states) if state.drafted.answer.finished)
    assert len(states[ended].plain.answer.passes) > 0
    assert states[0].speed_up is None


def test_every_pass_says_where_its_tokens_were_copied_from(folder: Path) -> None:
    *_, last = race(make_engine(folder, "pytorch"), QUESTION, PASSAGES, options=AnswerOptions("prompt-lookup"))
    for answer in (last.plain.answer, last.drafted.answer):
        assert sum(one.tokens for one in answer.passes) == answer.stats.new_tokens
        assert all(len(one.sources) < max(one.tokens, 1) for one in answer.passes)
    assert all(one.sources == () for one in last.plain.answer.passes)


def test_a_race_that_is_left_or_cancelled_frees_the_model(folder: Path) -> None:
    engine = make_engine(folder, "pytorch")
    states = race(engine, QUESTION, PASSAGES)
    for _ in range(5):
        next(states)
    states.close()  # type: ignore[attr-defined]
    wanted = threading.Event()
    cancelled = race(engine, QUESTION, PASSAGES, cancelled=wanted.is_set)
    next(cancelled)
    wanted.set()
    *_, last = cancelled
    assert (last.plain.answer.finished, last.drafted.answer.finished) == ("cancelled", "cancelled")
    *_, answer = engine.ask(QUESTION, PASSAGES)
    assert answer.finished == "length"


def test_where_nothing_is_found_both_lanes_say_so_at_once(folder: Path) -> None:
    (state,) = race(make_engine(folder, "pytorch"), QUESTION, given([]))
    assert state.plain.answer.text == state.drafted.answer.text == NOTHING_FOUND
    assert state.speed_up is None
