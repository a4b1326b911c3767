"""What one question chooses for itself, and the two ways to ask, with tiny models."""

from __future__ import annotations

import threading

import pytest

from app.answering.answers import Answer
from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.setup.settings import Paths, Settings
from decoding.sampling import Sampling
from indexes.errors import PromptTooLongError, SettingError
from retrieval.finder import given
from tests.app.tiny_models import write_bge_m3, write_llama

QUESTION = "what is lambda?"
PASSAGES = given(["the lambda is a function.", ("second", "a function is the answer.")])


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("asking")
    settings = Settings(
        profile="gpu", device="cpu", model=str(write_llama(folder / "model")), reranker="none",
        encoder=str(write_bge_m3(folder / "encoder")), max_new_tokens=30, top_k=1, stop_repeats=False,
    )  # fmt: skip
    return Engine(settings, home=Paths(folder / "data", folder / "cache"))


def ask(engine: Engine, **options: object) -> Answer:
    *_, answer = engine.ask(QUESTION, PASSAGES, options=AnswerOptions(**options))  # type: ignore[arg-type]
    return answer


def test_passages_that_are_given_are_answered_from_in_their_order(engine: Engine) -> None:
    assert [found.passage.id for found in ask(engine).passages] == ["1", "second"]


def test_a_question_s_own_drafter_length_and_seed_count(engine: Engine) -> None:
    answer = ask(engine, drafter="plain", max_new_tokens=7)
    assert (answer.stats.drafter, answer.stats.new_tokens, answer.finished) == ("plain", 7, "length")
    texts = {ask(engine, sampling=Sampling(1.5, seed=seed)).text for seed in (1, 2)}
    assert len(texts | {ask(engine).text}) == 3


def test_no_nodes_means_plain_decoding(engine: Engine) -> None:
    answer = ask(engine, max_nodes=0)
    assert (answer.stats.draft_nodes, answer.stats.accept_length) == (0, 1.0)


def test_an_answer_ends_before_its_stop_text(engine: Engine) -> None:
    whole = ask(engine).text
    stop = whole[10:13]
    answer = ask(engine, stop=(stop,))
    assert (answer.text, answer.finished) == (whole[: whole.index(stop)].rstrip(), "stop")


def test_messages_are_told_as_they_are_and_their_text_is_drafted_from(engine: Engine) -> None:
    messages = [{"role": "system", "content": "be short"}, {"role": "user", "content": QUESTION}]
    *_, answer = engine.complete(messages, PASSAGES.passages)
    expected = engine.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert answer.stats.prompt_tokens == len(engine.tokenizer(expected, add_special_tokens=False).input_ids)
    assert answer.question == QUESTION
    assert answer.stats.draft_nodes > 0
    *_, plain = engine.complete(messages, options=AnswerOptions("plain"))
    assert plain.text == answer.text


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "no user message"),
        ([{"role": "user", "content": "  "}], "no user message"),
        ([{"role": "tool", "content": "x"}], "'tool'; choose one of system, developer, user, assistant"),
    ],
)
def test_messages_that_cannot_be_answered_are_refused(
    engine: Engine, messages: list[dict[str, str]], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        list(engine.complete(messages))


def test_messages_longer_than_the_context_are_refused(engine: Engine) -> None:
    with pytest.raises(PromptTooLongError, match="the messages have 5"):
        list(engine.complete([{"role": "user", "content": "a" * 5000}]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"top_k": 0}, "top_k is 0"),
        ({"max_nodes": -1}, "max_nodes is -1"),
        ({"stop": ("",)}, "none of them empty"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        AnswerOptions(**options)  # type: ignore[arg-type]


def test_an_unknown_drafter_of_one_question_is_refused_before_any_work(engine: Engine) -> None:
    with pytest.raises(SettingError, match="unknown drafter 'no-such'"):
        next(engine.ask(QUESTION, PASSAGES, options=AnswerOptions("no-such")))


def test_an_answer_that_waits_for_the_model_can_be_cancelled(engine: Engine) -> None:
    writing = engine.ask(QUESTION, PASSAGES)
    next(writing)
    wanted = threading.Event()
    threading.Timer(0.2, wanted.set).start()
    *_, answer = engine.ask(QUESTION, PASSAGES, cancelled=wanted.is_set)
    assert answer.finished == "cancelled"
    assert list(writing)[-1].finished == "length"
