"""Answers as server-sent events: texts grow, so each event holds what has been added."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from typing import Any, TypeVar

from fastapi import Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from app.answering.answers import Answer
from app.api.errors import described
from app.api.queue import Job

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # proxies are not to collect events

STREAMED: dict[int | str, dict[str, Any]] = {  # for the OpenAPI document: what each event is, its data being JSON
    200: {
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "properties": {"data": {"type": "string"}, "event": {"type": "string"}},
                    "required": ["data"],
                }
            }
        }
    }
}
T = TypeVar("T")
Events = Callable[[AsyncIterator[Answer]], AsyncIterator[bytes]]


def event(content: Any, name: str | None = None) -> bytes:
    """One event; the content as JSON in ASCII."""
    return format_sse_event(data_str=json.dumps(content, allow_nan=False, separators=(",", ":")), event=name)


async def answers_of(job: Job[Answer]) -> AsyncGenerator[Answer]:
    """The states of an answer; the last one says why the server ended it, if it did."""
    async for answer in job.states():
        if answer.finished == "cancelled" and job.reason:
            answer = replace(answer, notes=(*answer.notes, f"the answer was ended: {job.reason}"))
        yield answer


async def last(states: AsyncIterator[T]) -> T:
    """The last state."""
    *_, final = [state async for state in states]
    return final


async def added(states: AsyncIterator[Answer]) -> AsyncIterator[tuple[Answer, str]]:
    """Each state with the text that it adds to the one before."""
    sent = 0
    async for state in states:
        yield state, state.text[sent:]
        sent = max(sent, len(state.text))


async def stream(states: AsyncGenerator[Answer], events: Events, error_name: str | None = None) -> Response:
    """Stream the answer. Raises, before the stream begins, what is wrong with the question; what goes wrong later is
    its last event."""
    first = await anext(states)

    async def all_states() -> AsyncIterator[Answer]:
        yield first
        async for state in states:
            yield state

    async def body() -> AsyncIterator[bytes]:
        try:
            async for one in events(all_states()):
                yield one
        except Exception as error:  # the status has been sent
            yield event(described(error)[1], error_name)
        finally:
            await states.aclose()

    return StreamingResponse(body(), headers=HEADERS, media_type="text/event-stream")
