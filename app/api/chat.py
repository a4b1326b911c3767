"""/v1/chat/completions: messages straight to the model, in OpenAI's protocol.

What an answer may be drafted from, and is traced in, are the request's `references` and its own messages: all before
the last, and the last one if it is long, as when it holds the passages of somebody else's retrieval.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response

from app.answering.answers import Answer
from app.api.errors import json_response
from app.api.queue import Job
from app.api.replies import ChatReply
from app.api.requests import ChatRequest
from app.api.service import MESSAGE, Asker, Served, Service, begin, named, now, person_of
from app.api.streams import STREAMED, added, answers_of, event, last, stream
from retrieval.finder import Found, given

LONG_CHARS = 200  # a last message of so many characters is more than a question
FINISH = {"length": "length", "context": "length", "cancelled": "length"}  # cancelled: by the server's time limit

router = APIRouter()


def message_references(body: ChatRequest) -> list[Found]:
    """What may be drafted from: the references given, then the messages, by place."""
    pairs = named(body.references)
    final = len(body.messages) - 1
    for place, message in enumerate(body.messages):
        if message.text.strip() and (place < final or len(message.text) >= LONG_CHARS):
            pairs.append((f"{MESSAGE}{place}", message.text))
    return list(given(pairs).passages)


def usage(answer: Answer) -> dict[str, int]:
    """Tokens read and written."""
    read, written = answer.stats.prompt_tokens, answer.stats.new_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def trace(answer: Answer) -> dict[str, Any]:
    """What is added to a completion: the answer's object without what stands elsewhere."""
    return {name: value for name, value in answer.to_json().items() if name not in ("question", "answer")}


def finish_reason(answer: Answer) -> str:
    """Why it ended, in OpenAI's two words."""
    return FINISH.get(answer.finished or "", "stop")


class _Completion:
    """The parts of one completion, whole or in chunks."""

    def __init__(self, served: Service, body: ChatRequest) -> None:
        self._usage = bool(body.stream_options and body.stream_options.include_usage)
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": now(),
            "model": served.chat_model,
            "system_fingerprint": served.fingerprint,
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(answer)}
        rest = {"choices": [choice], "usage": usage(answer), "quotewright": trace(answer)}
        return {**self._head, "object": "chat.completion", **rest}

    def _chunk(self, delta: dict[str, str], finish: str | None = None, **rest: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event([choice], **rest)

    def _event(self, choices: list[dict[str, Any]], **rest: Any) -> bytes:
        unused = {"usage": None} if self._usage else {}
        return event({**self._head, "object": "chat.completion.chunk", "choices": choices, **unused, **rest})

    async def chunks(self, states: AsyncIterator[Answer]) -> AsyncIterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})
        async for state, text in added(states):
            answer = state
            if text:
                yield self._chunk({"content": text})
        yield self._chunk({}, finish_reason(answer), quotewright=trace(answer))
        if self._usage:
            yield self._event([], usage=usage(answer))
        yield b"data: [DONE]\n\n"


@router.post(
    "/v1/chat/completions",
    summary="Have the model go on with a conversation",
    response_model=ChatReply,
    responses=STREAMED,
)
async def chat_completions(body: ChatRequest, request: Request, served: Served, asker: Asker) -> Response:
    """With `stream`, chunks as server-sent events; the last one with a choice holds the object `quotewright`."""
    served.check_model(body.model, served.chat_model)
    roles = {"developer": "system"}
    messages = [{"role": roles.get(one.role, one.role), "content": one.text} for one in body.messages]
    options = served.options(body, body.max_completion_tokens or body.max_tokens, body.top_k)
    references, person = message_references(body), person_of(asker, body.user)
    job: Job[Answer] = begin(
        request, served, lambda cancelled: served.engine.complete(messages, references, options, cancelled, person)
    )
    completion = _Completion(served, body)
    if body.stream:
        return await stream(answers_of(job), completion.chunks)
    return json_response(completion.whole(await last(answers_of(job))))
