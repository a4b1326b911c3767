"""The application: routes, errors, limits and the gate before them, as one FastAPI application.

Knows no address and no port; `app.api.server` serves it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from app.api import answers, chat, embeddings, listings
from app.api.access import Access, Gate
from app.api.errors import handle_errors
from app.api.queue import Queue
from app.api.replies import ErrorReply
from app.api.service import Service, now

if TYPE_CHECKING:
    from app.answering.engine import Engine
    from retrieval.finder import Finder

ERRORS = {
    400: "The request cannot be used.", 401: "An API key is missing or unknown.", 403: "Not from this Host or Origin.",
    404: "There is no such model or index.", 408: "The body came too slowly.", 409: "The index is damaged.",
    413: "The body is too large.", 429: "Too many requests wait; Retry-After says when to ask again.",
}  # fmt: skip
MIB = 2**20
REMOTE_AT_ONCE = 8  # answers that another server writes; a model here writes one


def create_application(engine: Engine, access: Access, source: Path | Finder | None = None) -> FastAPI:
    """An application that answers with this engine, for those who get `access`.

    `source` is asked by questions that name none; None: the index of the settings.
    """
    settings = engine.settings
    asked = engine.paths.indexes / settings.index if source is None else source
    at_once = 1 if settings.engine == "local" else REMOTE_AT_ONCE
    queue = Queue(at_once, settings.queue_length, settings.request_timeout_s)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        queue.close()

    application = FastAPI(
        title="Quotewright",
        version="1",
        description="Answers over your own documents, traced to the character; OpenAI's protocol.",
        lifespan=lifespan,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    application.state.service = Service(engine, queue, asked, settings.most_new_tokens, now())
    application.state.stop = queue.close
    handle_errors(application)
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorReply, "description": text} for status, text in ERRORS.items()
    }
    for router in (chat.router, answers.router, embeddings.router, listings.router):
        application.include_router(router, responses=errors, max_body_size=settings.max_body_mb * MIB)
    if access.origins:
        application.add_middleware(
            CORSMiddleware, allow_origins=sorted(access.origins), allow_methods=["*"], allow_headers=["*"]
        )
    application.add_middleware(Gate, access=access, most_bytes=settings.max_body_mb * MIB)
    _document_our_errors(application)
    return application


def _document_our_errors(application: FastAPI) -> None:
    """Take the status 422 out of the OpenAPI document: what does not validate is answered with 400."""
    generate = application.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        return document

    application.openapi = openapi  # type: ignore[method-assign]
