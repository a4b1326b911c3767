"""/v1/answers: a question over an index or over passages sent with it; replies hold passages, spans and figures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import APIRouter, Request, Response

from app.answering.answers import Answer
from app.api.errors import json_response
from app.api.queue import Job
from app.api.replies import AnswerReply
from app.api.requests import AnswerRequest
from app.api.service import Asker, Served, Service, begin, named, person_of
from app.api.streams import STREAMED, added, answers_of, event, last, stream
from indexes.errors import SettingError
from indexes.store import check_name
from retrieval.conversation import Turn
from retrieval.finder import Finder, given

router = APIRouter()


def source(served: Service, body: AnswerRequest) -> Path | Finder:
    """Where the passages come from. Raises SettingError."""
    if body.references is not None:
        if body.index is not None:
            raise SettingError("a question is answered from an `index` or from `references`; send one of them")
        return given(named(body.references))
    return served.source if body.index is None else served.engine.paths.indexes / check_name(body.index)


async def _events(states: AsyncIterator[Answer]) -> AsyncIterator[bytes]:
    shown = False
    async for answer, text in added(states):
        if not shown:
            whole = answer.to_json()
            yield event({"question": whole["question"], "passages": whole["passages"]}, "passages")
            shown = True
        if text:
            yield event({"text": text}, "text")
    yield event(answer.to_json(), "answer")


@router.post(
    "/v1/answers",
    summary="Answer a question from documents",
    response_model=AnswerReply,
    responses=STREAMED,
)
async def answers(body: AnswerRequest, request: Request, served: Served, asker: Asker) -> Response:
    """With `stream`, server-sent events: `passages` first, then `text` with what is added, `answer` with the whole
    object; `error` if something goes wrong on the way."""
    options = served.options(body, body.max_new_tokens, body.sample_top_k, body.top_k)
    turns = [Turn(turn.question, turn.answer) for turn in body.turns]
    asked, person = source(served, body), person_of(asker, body.user)
    job: Job[Answer] = begin(
        request,
        served,
        lambda cancelled: served.engine.ask(body.question, asked, turns, options, cancelled, person),
    )
    if body.stream:
        return await stream(answers_of(job), _events, "error")
    return json_response((await last(answers_of(job))).to_json())
