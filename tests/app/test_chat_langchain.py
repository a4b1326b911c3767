"""QuotewrightChat with tiny models."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackHandler,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SecretStr, ValidationError

from app.answering.engine import Engine
from app.answering.shared_engines import drop_engines, shared_engine
from app.api.access import make_access
from app.api.application import create_application
from app.chat_langchain import QuotewrightChat
from app.documents.indexing import index_files
from app.retriever_langchain import QuotewrightRetriever
from indexes.errors import FinderError, IndexStoreError, PromptTooLongError, SettingError
from retrieval.finder import given
from tests.app.api.serving import running
from tests.app.tiny_models import write_bge_m3, write_llama

QUESTION = "what is lambda?"
WAIT_S = 60
Settings = dict[str, Any]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    folder = tmp_path_factory.mktemp("tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUOTEWRIGHT_HOME", str(folder))
        yield {
            "profile": "gpu", "device": "cpu", "model": str(write_llama(folder / "model")), "reranker": "none",
            "encoder": str(write_bge_m3(folder / "encoder")), "stop_repeats": False, "top_k": 2,
        }  # fmt: skip
    drop_engines()


@pytest.fixture(scope="module")
def engine(settings: Settings) -> Engine:
    return shared_engine(settings)


@pytest.fixture
def chat(settings: Settings) -> QuotewrightChat:
    return QuotewrightChat(settings=settings, max_tokens=30)


@pytest.fixture(scope="module")
def notes(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An index."""
    folder = tmp_path_factory.mktemp("notes")
    (folder / "a.txt").write_text("the lambda is a function.")
    index_files(engine, engine.paths.indexes / "notes", [folder])
    return "notes"


class Kept(BaseRetriever):
    """Finds two documents, and keeps what it was asked."""

    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        self.asked.append(query)
        return [Document("a lambda", id="one"), Document("a function", id="two")]


class Pieces(BaseCallbackHandler):
    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.chunks: list[Any] = []

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        self.pieces.append(token)
        self.chunks.append(chunk)


# What is answered


def test_messages_are_answered_as_the_engine_answers_them(chat: QuotewrightChat, engine: Engine) -> None:
    said = [SystemMessage("be short"), HumanMessage("a"), AIMessage("b"), ChatMessage(content=QUESTION, role="user")]
    *_, answer = engine.complete(
        [
            {"role": "system", "content": "be short"}, {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"}, {"role": "user", "content": QUESTION},
        ],
        options=chat.options(),
    )  # fmt: skip
    message = chat.invoke(said)
    assert message.content == answer.text
    assert message.usage_metadata == {
        "input_tokens": answer.stats.prompt_tokens,
        "output_tokens": 30,
        "total_tokens": answer.stats.prompt_tokens + 30,
    }


def test_the_metadata_tell_model_ending_passages_spans_and_figures(chat: QuotewrightChat, settings: Settings) -> None:
    metadata = chat.invoke(QUESTION, references=["the lambda"], drafter="plain").response_metadata
    assert (metadata["model_name"], metadata["finish_reason"]) == (settings["model"], "length")
    assert [passage["text"] for passage in metadata["passages"]] == ["the lambda"]
    assert (metadata["figures"]["drafter"], metadata["figures"]["accept_length"]) == ("plain", 1.0)
    assert (metadata["spans"], metadata["notes"]) == ([], [])


def test_parts_of_text_are_read(chat: QuotewrightChat) -> None:
    parts = HumanMessage([{"type": "text", "text": "what is "}, "lambda?"])
    assert chat.invoke([parts]).content == chat.invoke(QUESTION).content


def test_half_a_surrogate_pair_is_read_as_a_question_mark(chat: QuotewrightChat) -> None:
    assert chat.invoke("what is lambda\ud800").content == chat.invoke(QUESTION).content


def test_references_may_be_texts_pairs_and_documents_of_the_object_of_a_binding_or_of_a_call(
    chat: QuotewrightChat, settings: Settings
) -> None:
    references = ["one", ("second", "two"), Document("three", metadata={"source": "c", "page": 4})]
    own = QuotewrightChat(settings=settings, max_tokens=2, references=references)
    for message in (
        own.invoke("a"),
        chat.bind(references=references).invoke("a"),
        chat.invoke("a", references=references),
    ):
        found = message.response_metadata["passages"]
        assert [(passage["text"], passage["page"]) for passage in found] == [("one", None), ("two", None), ("three", 4)]
        assert [passage["id"] for passage in found][:2] == ["1", "second"]


def test_an_index_answers_the_last_question_with_what_was_said_before(
    notes: str, settings: Settings, engine: Engine
) -> None:
    from retrieval.conversation import Turn

    chat = QuotewrightChat(settings=settings, index=notes, max_tokens=9)
    message = chat.invoke([AIMessage("hi"), HumanMessage("a"), AIMessage("b"), HumanMessage(QUESTION)])
    *_, answer = engine.ask(QUESTION, engine.paths.indexes / notes, [Turn("a", "b")], chat.options())
    assert message.content == answer.text
    assert message.response_metadata["figures"]["prompt_tokens"] == answer.stats.prompt_tokens
    assert [passage["id"] for passage in message.response_metadata["passages"]] == [answer.passages[0].passage.id]
    by_folder = QuotewrightChat(settings=settings, index=engine.paths.indexes / notes, max_tokens=9)
    assert by_folder.invoke(QUESTION).content == chat.invoke(QUESTION).content


def test_a_retriever_is_asked_the_question_and_the_follow_up(settings: Settings) -> None:
    retriever = Kept()
    chat = QuotewrightChat(settings=settings, retriever=retriever, k=1, max_tokens=2)
    message = chat.invoke([("human", "lambda?"), ("ai", "b"), ("human", "why?")])
    assert retriever.asked == ["why?", "lambda? why?", "lambda? b why?"]
    assert [passage["id"] for passage in message.response_metadata["passages"]] == ["one"]


def test_any_finder_can_be_the_retriever(settings: Settings) -> None:
    message = QuotewrightChat(settings=settings, retriever=given(["x", "y"]), max_tokens=2).invoke(QUESTION)
    assert [passage["text"] for passage in message.response_metadata["passages"]] == ["x", "y"]


def test_a_retriever_may_use_the_same_engine(notes: str, settings: Settings) -> None:
    class Asks(Kept):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
            rewritten = QuotewrightChat(settings=settings, max_tokens=2).invoke(query).text
            return QuotewrightRetriever(settings=settings, index=notes).invoke(f"{query} {rewritten}")

    chat = QuotewrightChat(settings=settings, retriever=Asks(), max_tokens=2)
    assert len(chat.invoke(QUESTION).response_metadata["passages"]) == 1
    assert len(list(chat.stream(QUESTION))) > 0


def test_what_the_system_says_is_noted_where_we_write_the_prompt(settings: Settings) -> None:
    chat = QuotewrightChat(settings=settings, retriever=Kept(), max_tokens=2)
    (note,) = chat.invoke([SystemMessage("be short"), HumanMessage(QUESTION)]).response_metadata["notes"]
    assert "system messages were not told" in note


# Choices


def test_a_call_chooses_for_itself(chat: QuotewrightChat) -> None:
    message = chat.invoke(QUESTION, max_tokens=3)
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == 3
    drawn = {chat.invoke(QUESTION, temperature=1.5, seed=seed).text for seed in (1, 1, 2)}
    assert len(drawn | {chat.invoke(QUESTION).text}) == 3


def test_what_the_object_chooses_counts_where_a_call_chooses_nothing(settings: Settings, chat: QuotewrightChat) -> None:
    own = QuotewrightChat(settings=settings, temperature=1.5, seed=1, max_tokens=30)
    assert own.invoke(QUESTION).text == chat.invoke(QUESTION, temperature=1.5, seed=1).text
    assert own.invoke(QUESTION, seed=2).text == chat.invoke(QUESTION, temperature=1.5, seed=2).text


def test_an_answer_ends_before_a_stop_text(chat: QuotewrightChat, settings: Settings) -> None:
    whole = chat.invoke(QUESTION).text
    end = whole[10:13]
    expected = whole[: whole.index(end)].rstrip()
    stopped = chat.invoke(QUESTION, stop=[end])
    assert (stopped.text, stopped.response_metadata["finish_reason"]) == (expected, "stop")
    assert QuotewrightChat(settings=settings, stop=end).invoke(QUESTION).text == expected


def test_a_call_may_choose_another_model(chat: QuotewrightChat, tmp_path: Path) -> None:
    other = str(write_llama(tmp_path / "other"))
    assert chat.invoke(QUESTION, model=other).response_metadata["model_name"] == other


def test_an_answer_that_takes_too_long_is_an_error(chat: QuotewrightChat) -> None:
    chat.invoke(QUESTION)
    with pytest.raises(TimeoutError, match=r"not written within the timeout of 0.001 s"):
        chat.invoke(QUESTION, max_tokens=3000, timeout=0.001)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"temperature": -1}, "sampling's temperature is -1.0; allowed are 0"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 2}, "sampling's top_p is 2.0"),
        ({"seed": -1}, "sampling's seed is -1"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"k": 0}, "k"),
        ({"stop": [""]}, "none of them empty"),
        ({"stop": 3}, "stop"),
        ({"temprature": 1}, "temprature"),
        ({"index": "a", "retriever": given([])}, "index and retriever are given; passages come from one of them"),
        ({"retriever": 3}, "the retriever is a int; it must be an object with find"),
        ({"references": "a"}, "references is a str; give a list of Documents or texts"),
        ({"references": [1]}, "references has 1; give Documents, texts or"),
        ({"references": [("a", 1)]}, "pairs of strings"),
        ({"timeout": 0}, "timeout"),
        ({"settings": {"no": 1}}, "no = 1"),
    ],
)
def test_choices_that_cannot_be_are_refused_by_the_object_and_by_a_call(
    chat: QuotewrightChat, choices: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        QuotewrightChat(**choices)
    with pytest.raises(SettingError, match=words):
        chat.invoke(QUESTION, **choices)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (HumanMessage([{"type": "image_url", "image_url": "x"}]), "a part of the type 'image_url'"),
        (ToolMessage("3", tool_call_id="1"), "a ToolMessage cannot be told"),
        (AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]), "an AIMessage with tool calls cannot"),
        (ChatMessage(content="x", role="judge"), "'judge'; choose one of system"),
        (HumanMessage(" "), "no user message with text"),
    ],
)
def test_messages_that_cannot_be_told_are_refused(chat: QuotewrightChat, message: Any, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        chat.invoke([message])
    with pytest.raises(SettingError, match=words):
        list(chat.stream([message]))


def test_the_last_message_must_be_the_question_that_passages_are_found_for(settings: Settings) -> None:
    with pytest.raises(SettingError, match="the last message must be a HumanMessage"):
        QuotewrightChat(settings=settings, retriever=Kept()).invoke([HumanMessage("a"), AIMessage("b")])


def test_an_index_that_is_not_there_and_a_retriever_that_fails_are_named(settings: Settings) -> None:
    class Fails(Kept):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
            raise ConnectionError("no route")

    with pytest.raises(IndexStoreError, match="there is no index named 'none'"):
        QuotewrightChat(settings=settings, index="none").invoke(QUESTION)
    with pytest.raises(FinderError, match="the retriever failed: ConnectionError: no route"):
        QuotewrightChat(settings=settings, retriever=Fails()).invoke(QUESTION)


def test_too_long_a_prompt_is_an_error_in_a_stream_too(chat: QuotewrightChat) -> None:
    with pytest.raises(PromptTooLongError):
        list(chat.stream("a" * 5000))


# Streams, callbacks, batches


def test_a_stream_has_the_text_of_an_answer_and_tells_what_is_known_once(chat: QuotewrightChat) -> None:
    chunks = list(chat.stream(QUESTION))
    assert len(chunks) > 3
    assert "".join(str(chunk.content) for chunk in chunks) == chat.invoke(QUESTION).content
    assert [bool(chunk.response_metadata.get("model_name")) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert [chunk.usage_metadata is not None for chunk in chunks].count(True) == 1


async def test_a_stream_of_a_coroutine_has_the_same_pieces(chat: QuotewrightChat) -> None:
    text = "".join([str(chunk.content) async for chunk in chat.astream(QUESTION)])
    assert text == (await chat.ainvoke(QUESTION)).content


@pytest.mark.parametrize("method", ["stream", "invoke"])
def test_callbacks_get_each_piece_with_its_chunk(settings: Settings, method: str) -> None:
    handler = Pieces()
    choices: Any = {"streaming": True} if method == "invoke" else {}
    chat = QuotewrightChat(settings=settings, max_tokens=30, callbacks=[handler], **choices)
    if method == "invoke":
        text = str(chat.invoke(QUESTION).content)
    else:
        text = "".join(str(chunk.content) for chunk in chat.stream(QUESTION))
    assert "".join(handler.pieces) == text
    assert len(handler.pieces) > 3
    assert all(isinstance(chunk, ChatGenerationChunk) for chunk in handler.chunks)


def test_two_streams_read_in_turn_do_not_wait_for_each_other(chat: QuotewrightChat) -> None:
    streams = [chat.stream(QUESTION), chat.stream(QUESTION, seed=1)]
    pairs = list(itertools.zip_longest(*streams, fillvalue=AIMessageChunk(content="")))
    texts = ["".join(str(pair[which].content) for pair in pairs) for which in (0, 1)]
    assert texts == [chat.invoke(QUESTION).text] * 2


def test_batches_have_the_answers_of_single_questions(chat: QuotewrightChat) -> None:
    questions: list[Any] = [f"{QUESTION} {letter}" for letter in "abcdefgh"]
    expected = [chat.invoke(question).text for question in questions]
    assert [message.text for message in chat.batch(questions)] == expected


async def test_batches_larger_than_any_pool_of_threads_end(chat: QuotewrightChat) -> None:
    answers = await chat.abatch([QUESTION] * 60, max_tokens=2)
    assert len({message.text for message in answers}) == 1


# Cancelling


@pytest.fixture
def passes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each forward pass over drafts began."""
    engine.load()
    begun: list[float] = []
    forward = type(engine.target).forward

    def counted(*arguments: Any, **named: Any) -> Any:
        begun.append(time.perf_counter())
        return forward(*arguments, **named)

    monkeypatch.setattr(type(engine.target), "forward", counted)
    return begun


def assert_model_rests(passes: list[float], since: float) -> None:
    """No pass begins later than the one that was just going to."""
    time.sleep(0.5)
    assert len([begun for begun in passes if begun > since]) <= 2
    assert [thread for thread in threading.enumerate() if thread.name == "answer"] == []


def test_a_reader_that_stops_frees_the_model(chat: QuotewrightChat, passes: list[float]) -> None:
    for _ in chat.stream(QUESTION, max_tokens=3000, drafter="plain"):
        break
    assert_model_rests(passes, time.perf_counter())
    assert 0 < len(passes) < 2000


@pytest.mark.parametrize("method", ["ainvoke", "astream"])
async def test_a_task_that_is_cancelled_frees_the_model(
    chat: QuotewrightChat, passes: list[float], method: str
) -> None:
    async def read() -> None:
        if method == "ainvoke":
            await chat.ainvoke(QUESTION, max_tokens=3000, drafter="plain")
        async for _ in chat.astream(QUESTION, max_tokens=3000, drafter="plain"):
            pass

    task = asyncio.create_task(read())
    while not passes:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_model_rests(passes, time.perf_counter())


async def test_the_loop_runs_on_while_an_answer_is_written(chat: QuotewrightChat) -> None:
    answer = asyncio.create_task(chat.ainvoke(QUESTION, max_tokens=300, drafter="plain"))
    turns = 0
    while not answer.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 5


async def test_a_retriever_is_asked_in_the_loop_that_waits_for_the_answer(settings: Settings) -> None:
    loops: list[object] = []

    class Notes(Kept):
        async def _aget_relevant_documents(
            self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
        ) -> list[Document]:
            loops.append(asyncio.get_running_loop())
            return [Document("a")]

    await QuotewrightChat(settings=settings, retriever=Notes(), max_tokens=2).ainvoke(QUESTION)
    assert loops == [asyncio.get_running_loop()]


# The object


def test_equal_settings_share_an_engine_whether_said_or_left_to_the_profile(settings: Settings, engine: Engine) -> None:
    assert shared_engine(dict(settings)) is engine
    assert shared_engine(settings | {"chunk_chars": engine.profile.chunk_chars}) is engine
    assert shared_engine(settings | {"drafter": "plain"}) is not engine


def test_each_object_is_a_person_of_its_own_and_its_copies_are_the_same(chat: QuotewrightChat) -> None:
    assert QuotewrightChat().person != QuotewrightChat().person
    for copied in (copy.deepcopy(chat), pickle.loads(pickle.dumps(chat)), chat.model_copy()):  # noqa: S301
        assert copied.person == chat.person
        assert copied.invoke(QUESTION, max_tokens=2).text == chat.invoke(QUESTION, max_tokens=2).text


def test_langchain_s_cache_keeps_answers_apart_that_differ(chat: QuotewrightChat) -> None:
    chat.cache = InMemoryCache()
    asked = [{"seed": 1}, {"seed": 2}, {"seed": 1}]
    texts = [chat.invoke(QUESTION, temperature=1.5, **choices).text for choices in asked]  # type: ignore[arg-type]
    assert (texts[0] == texts[2], texts[0] == texts[1]) == (True, False)
    other = chat.model_copy(update={"seed": 5, "temperature": 1.5})
    assert other.invoke(QUESTION).text != chat.invoke(QUESTION).text


def test_answers_from_documents_that_may_change_are_not_cached(settings: Settings) -> None:
    assert QuotewrightChat(settings=settings, retriever=Kept()).cache is False
    assert QuotewrightChat(settings=settings, index="notes").cache is False
    assert QuotewrightChat(settings=settings).cache is None


def test_traces_see_no_key_and_no_person(settings: Settings) -> None:
    chat = QuotewrightChat(settings=settings, api_key=SecretStr("secret"), references=["a"])
    told = str(chat.asdict()) + str(chat)
    assert "secret" not in told
    assert chat.person not in str(chat.asdict())
    assert chat.asdict()["references"] == [("1", "a")]


def test_another_server_may_answer(chat: QuotewrightChat, settings: Settings, engine: Engine) -> None:
    with running(create_application(engine, make_access("127.0.0.1", ["secret"], (), ()))) as served:
        elsewhere = settings | {"engine": "openai", "base_url": f"{served}/v1", "remote_model": "model"}
        message = QuotewrightChat(settings=elsewhere, api_key=SecretStr("secret"), max_tokens=30).invoke(QUESTION)
    assert message.text == chat.invoke(QUESTION).text
    assert message.response_metadata["model_name"] == "model"
    assert message.response_metadata["figures"]["drafter"] == "remote"


def test_tokens_are_counted_by_the_model_s_own_tokenizer(chat: QuotewrightChat) -> None:
    assert chat.get_num_tokens("abc d") == 5  # a token for each character


def test_importing_and_making_objects_loads_no_heavy_library() -> None:
    program = (
        "import sys\nfrom app.chat_langchain import QuotewrightChat\nfrom app.retriever_langchain import "
        "QuotewrightRetriever\nfrom app.embeddings_langchain import QuotewrightEmbeddings\n"
        "QuotewrightChat(), QuotewrightRetriever(), QuotewrightEmbeddings()\n"
        "print({'torch', 'transformers', 'faiss', 'numba', 'sentence_transformers'} & set(sys.modules))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("set()\n", "")
