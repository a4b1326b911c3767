"""Another server as the generator: our own one, on a real port, with tiny models; and servers that misbehave."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.answering.answers import Answer
from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.answering.remote import chosen
from app.answering.remote_errors import choose_model
from app.api.access import make_access
from app.api.application import create_application
from decoding.sampling import GREEDY, Sampling
from indexes.errors import ModelError, PromptTooLongError, QuotewrightError, SettingError
from retrieval.conversation import Turn
from retrieval.finder import given
from tests.app.api.serving import INDEX, running, tiny_engine

QUESTION = "what is a lambda?"
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": QUESTION}]
PASSAGES = given(["the lambda  is a\nfunction.", ("second", "a function is the answer.")])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def local(folder: Path) -> Engine:
    return tiny_engine(folder, max_new_tokens=60, stop_repeats=True)


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Our server with a key, over an engine of its own."""
    engine = tiny_engine(folder, max_new_tokens=60)
    with running(create_application(engine, make_access("127.0.0.1", ["secret"], (), ()))) as served:
        yield f"{served}/v1"


@pytest.fixture(scope="module")
def remote(folder: Path, address: str) -> Engine:
    return remote_engine(folder, address, api_key="secret", stop_repeats=True)


def remote_engine(folder: Path, address: str, **settings: object) -> Engine:
    return tiny_engine(folder, engine="openai", base_url=address, max_new_tokens=60, **settings)


def last(answers: Iterator[Answer]) -> Answer:
    *_, answer = answers
    return answer


# The same answers


@pytest.mark.parametrize(
    "options",
    [
        AnswerOptions(), AnswerOptions(max_new_tokens=7), AnswerOptions(stop=("g", "never")), AnswerOptions(top_k=1),
        AnswerOptions(sampling=Sampling(1.3, 0.9, 40, 0.01, 1.1, seed=11)), AnswerOptions(sampling=Sampling(0, seed=3)),
    ],
)  # fmt: skip
def test_an_answer_over_an_index_is_the_local_one(local: Engine, remote: Engine, options: AnswerOptions) -> None:
    turns = [Turn("what is a function?", "the answer.")]
    expected = last(local.ask(QUESTION, local.paths.indexes / INDEX, turns, options))
    answer = last(remote.ask(QUESTION, remote.paths.indexes / INDEX, turns, options))
    assert (answer.text, answer.finished, answer.spans) == (expected.text, expected.finished, expected.spans)
    assert answer.passages == expected.passages


def test_messages_are_told_as_they_are_and_spans_are_found_here(local: Engine, remote: Engine) -> None:
    text = last(local.complete(MESSAGES)).text
    references = given([("copied", f"before {text} after")]).passages
    answer = last(remote.complete(MESSAGES, references))
    assert answer.text == text
    assert {span.passage_id for span in answer.spans} == {"copied"}


def test_its_figures_are_the_server_s_count_and_our_clock(remote: Engine) -> None:
    stats = last(remote.complete(MESSAGES, options=AnswerOptions(max_new_tokens=9))).stats
    assert (stats.drafter, stats.forward_passes, stats.accept_length) == ("remote", 0, 1.0)
    # <|system|>, 8 characters, <|end|>, <|user|>, 17 characters, <|end|>, <|assistant|>
    assert (stats.prompt_tokens, stats.new_tokens) == (30, 9)
    assert 0 < stats.time_to_first_token_s <= stats.total_s
    assert "accept length" not in stats.line()


def test_no_model_is_loaded_for_it(remote: Engine) -> None:
    last(remote.complete(MESSAGES))
    assert {"target", "tokenizer", "model_folder", "verify_times"} & set(vars(remote)) == set()


def test_its_text_only_grows(remote: Engine) -> None:
    states = list(remote.ask(QUESTION, PASSAGES))
    assert all(after.text.startswith(before.text) for before, after in itertools.pairwise(states))
    assert [state.finished for state in states[:-1]] == [None] * (len(states) - 1)


# Leaving


class Silent(BaseHTTPRequestHandler):
    """A server that takes requests, says what `reply` holds, and waits for the client to go."""

    gone = threading.Event()
    reply = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(self.reply)
        self.wfile.flush()
        self.connection.settimeout(10)
        if self.connection.recv(1) == b"":
            self.gone.set()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def silent() -> Iterator[str]:
    Silent.gone.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
PIECE = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}\n\n'
)


@pytest.mark.parametrize("reply", [b"", HEAD, HEAD + PIECE])
def test_cancelling_closes_the_connection_at_once_whatever_the_server_does(
    folder: Path, silent: str, reply: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Silent, "reply", reply)
    engine, stop = remote_engine(folder, silent, remote_model="m"), threading.Event()
    threading.Timer(0.5, stop.set).start()
    start = time.monotonic()
    answer = last(engine.complete(MESSAGES, cancelled=stop.is_set))
    assert Silent.gone.wait(5)
    assert (answer.finished, answer.text) == ("cancelled", "hello" if PIECE in reply else "")
    assert time.monotonic() - start < 5


def test_a_reader_that_leaves_closes_the_connection(folder: Path, silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Silent, "reply", HEAD + PIECE)
    states = remote_engine(folder, silent, remote_model="m").complete(MESSAGES)
    assert [next(states).text, next(states).text] == ["", "hello"]
    states.close()  # type: ignore[attr-defined]
    assert Silent.gone.wait(5)


# What goes wrong


def reply(status: str, body: bytes, *headers: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status}".encode(), b"Content-Length: %d" % len(body), b"Connection: close", *headers]
    return b"\r\n".join([*lines, b"", body])


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (reply("500 Oops", b"{}", b"x-should-retry: false"), ModelError, "failed"),
        (reply("429 Busy", b"{}", b"x-should-retry: false"), ModelError, "has no time"),
        (reply("403 No", b'{"error": {"message": "not you"}}'), SettingError, "refuses the key .not you.; set QUOTE"),
        (reply("422 No", b'{"error": {"message": "odd"}}'), SettingError, "refuses the request with 422 .odd."),
        (HEAD + b'data: {"error": {"message": "burnt"}}\n\n', ModelError, "failed .burnt."),
        (HEAD + b"data: nonsense\n\n", ModelError, "does not speak OpenAI's protocol"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", ModelError, "cannot be reached"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_told_of_with_what_it_said(
    folder: Path, silent: str, said: bytes, error: type[QuotewrightError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Silent, "reply", said)
    with pytest.raises(error, match=words):
        list(remote_engine(folder, silent, remote_model="m").complete(MESSAGES))


def test_a_stream_that_breaks_off_is_an_answer_that_says_so(
    folder: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Silent, "do_POST", _one_piece)
    answer = last(remote_engine(folder, silent, remote_model="m").complete(MESSAGES))
    assert (answer.text, answer.finished) == ("hello", "length")
    assert answer.notes == ("the server broke off before the end",)


def _one_piece(handler: Silent) -> None:
    handler.wfile.write(HEAD + PIECE)
    handler.close_connection = True


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"api_key": "wrong"}, SettingError, "refuses the key .*set QUOTEWRIGHT_API_KEY"),
        ({}, SettingError, "refuses the key"),
        (
            {"api_key": "secret", "remote_model": "gpt-9"},
            SettingError,
            "there is no model 'gpt-9' here.*--remote-model",
        ),
    ],
)
def test_our_server_s_refusals_say_what_to_do(
    folder: Path, address: str, settings: dict[str, Any], error: type[QuotewrightError], words: str
) -> None:
    with pytest.raises(error, match=words):
        list(remote_engine(folder, address, **settings).complete(MESSAGES))


def test_a_prompt_that_the_server_cannot_read_is_too_long(remote: Engine) -> None:
    with pytest.raises(PromptTooLongError, match=r"cannot read so much .*use fewer passages"):
        list(remote.complete([{"role": "user", "content": "a" * 5000}]))


def test_a_server_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(
        ModelError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached .*start it, or correct --base-url"
    ):
        list(remote_engine(folder, "http://127.0.0.1:9/v1", remote_model="m").complete(MESSAGES))


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x/v1"])
def test_an_address_that_is_none_is_refused_at_once(folder: Path, url: str) -> None:
    with pytest.raises(SettingError, match=r"base_url is .*give the server's, as in --base-url"):
        remote_engine(folder, url)


@pytest.mark.parametrize(
    ("served", "words"),
    [([], "has 0 models"), ([("a", "chat"), ("b", "chat")], "has 2 models .a, b.; choose one with --remote-model")],
)
def test_a_model_is_chosen_only_where_there_is_one(served: list[tuple[str, str]], words: str) -> None:
    assert choose_model([("e", "embeddings"), ("a", "chat")]) == "a"
    with pytest.raises(SettingError, match=words):
        choose_model(served)


def test_only_what_was_chosen_beyond_the_protocol_is_sent() -> None:
    assert chosen(GREEDY) == {"temperature": 0}
    assert chosen(Sampling(0.5, 0.9, seed=2)) == {"temperature": 0.5, "top_p": 0.9, "seed": 2}
    assert chosen(Sampling(0.5, top_k=5, repetition_penalty=1.1))["extra_body"] == {
        "top_k": 5, "repetition_penalty": 1.1,
    }  # fmt: skip
