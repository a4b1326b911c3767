"""`QuotewrightChat`: Quotewright as a chat model of LangChain.

Without passages of its own it tells the model the messages as they are, drafts from them and from `references`, and
finds spans in those. With `index` or `retriever` it finds passages for the last question and answers from them, the
messages before being the conversation so far. Nothing is loaded before the first answer; equal settings share models.
One answer is written at a time; each in a thread of its own, so readers and event loops never hold the model.

The models that this is made for call no tools and keep to no schema, so neither is offered.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, model_validator

from app.answering.background import in_background, in_background_async
from app.answering.shared_engines import shared_engine
from app.answering.sources import as_finder, index_folder
from app.chat_choices import Choices
from app.messages_langchain import chunk_of, conversation, message_of, references_of, told

if TYPE_CHECKING:
    from app.answering.answers import Answer
    from app.answering.engine import Engine

RETRIEVER = "the retriever"
UNTOLD = ("person", "api_key", "references")  # to caches and traces; references are told in another form

Cancelled = Callable[[], bool]


class QuotewrightChat(Choices, BaseChatModel):
    """Answers with copied spans, passages and figures in `response_metadata`; `Choices` says what can be chosen.

    Each call may choose for itself: invoke(..., seed=3), bind(references=documents). Raises SettingError for what
    cannot be, PromptTooLongError, ModelError, FinderError; TimeoutError after `timeout` seconds.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())

    streaming: bool = False
    """Whether invoke, too, tells callbacks each piece of text."""
    max_retries: int | None = None
    """A standard argument of LangChain's without work here: nothing fails that would not fail again."""

    @model_validator(mode="after")
    def _check_passages(self) -> QuotewrightChat:
        """What cannot give passages is refused now; LangChain's cache, which sees no change of documents, not used."""
        if self.references is not None:
            references_of(self.references)
        if self.retriever is not None:
            as_finder(self.retriever, RETRIEVER)
        if self.cache is None and (self.index is not None or self.retriever is not None):
            self.cache = False
        return self

    @property
    def _llm_type(self) -> str:
        return "quotewright"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """What decides which answer is given, for caches and traces."""
        chosen = {name: getattr(self, name) for name in Choices.model_fields if name not in UNTOLD}
        chosen["settings"] = {name: value for name, value in self.settings.items() if not name.startswith("api_key")}
        if self.retriever is not None:
            chosen["retriever"] = repr(self.retriever)
        if self.references is not None:
            chosen["references"] = [(item.passage.id, item.passage.text) for item in references_of(self.references)]
        return {name: value for name, value in chosen.items() if value is not None}

    def get_token_ids(self, text: str) -> list[int]:
        """The tokens of a text, as the model reads it."""
        return list(shared_engine(self.engine_settings).tokenizer(text, add_special_tokens=False).input_ids)

    # Answers

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        choices = self.of_call(stop=stop, **kwargs)
        *_, answer = _answers(messages, choices, lambda: False)
        return self._result(answer, choices)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        choices, loop = self.of_call(stop=stop, **kwargs), asyncio.get_running_loop()
        async with contextlib.aclosing(in_background_async(lambda off: _answers(messages, choices, off, loop))) as made:
            async for state in made:
                answer = state
        return self._result(answer, choices)

    def _result(self, answer: Answer, choices: Choices) -> ChatResult:
        message = message_of(answer, choices.model)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        choices, sent = self.of_call(stop=stop, **kwargs), 0
        with contextlib.closing(in_background(lambda off: _answers(messages, choices, off))) as made:
            for answer in made:
                if message := chunk_of(answer, sent, choices.model):
                    sent, chunk = len(answer.text), ChatGenerationChunk(message=message)
                    if run_manager:
                        run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        choices, sent, loop = self.of_call(stop=stop, **kwargs), 0, asyncio.get_running_loop()
        async with contextlib.aclosing(in_background_async(lambda off: _answers(messages, choices, off, loop))) as made:
            async for answer in made:
                if message := chunk_of(answer, sent, choices.model):
                    sent, chunk = len(answer.text), ChatGenerationChunk(message=message)
                    if run_manager:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk


def _answers(
    messages: list[BaseMessage],
    choices: Choices,
    cancelled: Cancelled,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Iterator[Answer]:
    """The states of an answer; a retriever is asked in `loop`. Raises TimeoutError when the time chosen is up."""
    end = time.monotonic() + choices.timeout if choices.timeout else None

    def late() -> bool:
        return end is not None and time.monotonic() > end

    for answer in _begun(messages, choices, lambda: cancelled() or late(), loop):
        if answer.finished == "cancelled" and late():
            raise TimeoutError(f"the answer was not written within the timeout of {choices.timeout} s")
        yield answer


def _begun(
    messages: list[BaseMessage], choices: Choices, cancelled: Cancelled, loop: asyncio.AbstractEventLoop | None
) -> Iterator[Answer]:
    engine: Engine = shared_engine(choices.engine_settings)
    options = choices.options(engine.sampling)
    if choices.index is None and choices.retriever is None:
        references = references_of(choices.references or [])
        yield from engine.complete(told(messages), references, options, cancelled, choices.person)
        return
    question, turns, notes = conversation(messages)
    own = choices.retriever is not None
    source = as_finder(choices.retriever, RETRIEVER, loop) if own else index_folder(engine, choices.index or "")
    for answer in engine.ask(question, source, turns, options, cancelled, choices.person):
        yield replace(answer, notes=(*answer.notes, *notes))
