"""Has answers written by another server that speaks OpenAI's protocol, instead of by a model in this process.

The prompt's messages are ours, and spans are found here, on the server's text. How the server decodes is unknown: no
forward passes are counted. The client runs in an event loop of its own, for only there can a read be given up at once.
"""

from __future__ import annotations

import asyncio
import functools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.answering.answers import Answer
from app.answering.asking import Task
from app.answering.prompt import Message, checked, question_messages
from app.answering.remote_errors import choose_model, explained
from app.answering.writing import AnswerText, WritingSettings
from app.setup.settings import Settings
from decoding.sampling import Sampling
from indexes.errors import SettingError

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionChunk

ASK_EVERY_S = 0.05  # whether an answer is still wanted, while the server is silent
CONNECT_S = 10.0
RETRIES = 2  # of requests that the server had no time for, with growing pauses
MOST_STOPS = 4  # that the protocol takes; all of them are looked for here, too
REMOTE = "remote"  # in the place of a drafter's name
FINISHED = {"length": "length", "stop": "stop", None: "cancelled"}


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """Where the server is; model None: the only one that it has. silence_s is how long it may say nothing."""

    base_url: str
    api_key: str | None
    model: str | None
    silence_s: float


def remote_server(settings: Settings) -> RemoteServer | None:
    """The server that is to answer; None: a model here. Raises SettingError for an address that is none."""
    if settings.engine == "local":
        return None
    url = settings.base_url or ""
    if not url.startswith(("http://", "https://")):
        raise SettingError(f"base_url is {url!r}; give the server's, as in --base-url http://127.0.0.1:8000/v1")
    key = settings.api_key.get_secret_value() if settings.api_key else None
    return RemoteServer(url, key, settings.remote_model, settings.remote_timeout_s)


class RemoteWriter:
    """Writes answers with a server's model, as many at a time as are asked for. Any thread may ask."""

    def __init__(self, server: RemoteServer, settings: WritingSettings) -> None:
        self._server = server
        self._settings = settings
        self._found_model = server.model
        self._starting = threading.Lock()

    def write(self, task: Task) -> Iterator[Answer]:
        """Write the answer, yielding its state before the first and after each piece of text.

        `cancelled`, and leaving, close the connection. Raises SettingError, ModelError and PromptTooLongError.
        """
        answer = replace(task.state, stats=replace(task.state.stats, drafter=REMOTE))
        yield answer
        stop_repeats = self._settings.stop_repeats and task.messages is None
        text = AnswerText(answer, task.options.stop, stop_repeats, self._settings.min_span_words)
        received = _Received(task.start)
        for chunk in self._chunks(task):
            received.add(chunk)
            answer = text.after(received.told_in(answer), received.text, task.start)
            yield answer
            if answer.finished:  # by its text
                return
        answer = replace(received.told_in(answer), finished=FINISHED.get(received.finish, "stop"))
        if received.finish is None and not task.cancelled():
            answer = replace(answer, finished="length", notes=(*answer.notes, "the server broke off before the end"))
        yield text.after(answer, received.text, task.start)

    def _chunks(self, task: Task) -> Iterator[ChatCompletionChunk]:
        """What the server sends, until it ends or the answer is cancelled."""
        chunks: queue.SimpleQueue[ChatCompletionChunk | None] = queue.SimpleQueue()
        reading = asyncio.run_coroutine_threadsafe(self._read(task, chunks.put), self._loop)
        reading.add_done_callback(lambda _: chunks.put(None))
        try:
            while not task.cancelled():
                try:
                    chunk = chunks.get(timeout=ASK_EVERY_S)
                except queue.Empty:
                    continue
                if chunk is None:
                    if error := reading.exception():
                        raise explained(error, self._server.base_url) from error
                    return
                yield chunk
        finally:
            reading.cancel()

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            return self._running_loop

    @functools.cached_property
    def _running_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="remote", daemon=True).start()
        return loop

    @functools.cached_property
    def _client(self) -> AsyncOpenAI:
        """Used in the loop only. The key is always given: another server's, from the environment, is not for this."""
        from httpx2 import Timeout
        from openai import AsyncOpenAI

        patience = Timeout(self._server.silence_s, connect=CONNECT_S)
        key = self._server.api_key or "none"
        return AsyncOpenAI(base_url=self._server.base_url, api_key=key, timeout=patience, max_retries=RETRIES)

    async def _model(self) -> str:
        """The model's name; a server that is to be asked for it is asked once."""
        if self._found_model is None:
            served = [model async for model in self._client.models.list()]
            self._found_model = choose_model([(model.id, getattr(model, "kind", "chat")) for model in served])
        return self._found_model

    async def _read(self, task: Task, put: Callable[[ChatCompletionChunk], None]) -> None:
        from openai import BadRequestError

        request = self._request(task)
        request["model"] = await self._model()
        try:
            stream = await self._client.chat.completions.create(**request)
        except BadRequestError as error:
            if error.param != "max_tokens":
                raise
            request["max_completion_tokens"] = request.pop("max_tokens")  # the newer name of it
            stream = await self._client.chat.completions.create(**request)
        async with stream:
            async for chunk in stream:
                put(chunk)

    def _request(self, task: Task) -> dict[str, Any]:
        options, sampling = task.options, task.options.sampling or self._settings.sampling
        request: dict[str, Any] = {
            "messages": self._messages(task),
            "max_tokens": options.max_new_tokens or self._settings.max_new_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **chosen(sampling),
        }
        if options.stop:
            request["stop"] = list(options.stop[:MOST_STOPS])
        return request

    def _messages(self, task: Task) -> Sequence[Message]:
        if task.messages is not None:
            return checked(task.messages)
        told = task.turns[max(0, len(task.turns) - self._settings.history_turns) :]
        return question_messages(task.state.question, [found.passage.text for found in task.state.passages], told)


class _Received:
    """What has come of an answer. Tokens are the server's own count, or the pieces of text where it tells none."""

    def __init__(self, start: float) -> None:
        self.text = ""
        self.finish: str | None = None
        self._start = start
        self._pieces = 0
        self._first_s = self._last_s = 0.0
        self._usage: tuple[int, int] | None = None

    def add(self, chunk: ChatCompletionChunk) -> None:
        """One more chunk; the last ones may hold no text."""
        if chunk.usage:
            self._usage = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            if choice.delta.content:
                self.text += choice.delta.content
                self._pieces += 1
                self._last_s = time.perf_counter() - self._start
                self._first_s = self._first_s or self._last_s

    def told_in(self, answer: Answer) -> Answer:
        """The answer with the figures so far."""
        prompt_tokens, new_tokens = self._usage or (0, self._pieces)
        stats = replace(
            answer.stats,
            prompt_tokens=prompt_tokens,
            new_tokens=new_tokens,
            time_to_first_token_s=self._first_s,
            decode_s=self._last_s - self._first_s,
        )
        return replace(answer, stats=stats)


def chosen(sampling: Sampling) -> dict[str, Any]:
    """How words are chosen, as fields of a request; what is not in OpenAI's protocol only where it was chosen."""
    if sampling.greedy:
        fields: dict[str, Any] = {"temperature": 0}
        beyond = {"repetition_penalty": (sampling.repetition_penalty, 1)}
    else:
        fields = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        beyond = {
            "top_k": (sampling.top_k, 0),
            "min_p": (sampling.min_p, 0),
            "repetition_penalty": (sampling.repetition_penalty, 1),
        }
    extra = {name: value for name, (value, neutral) in beyond.items() if value != neutral}
    return fields | ({"extra_body": extra} if extra else {})
