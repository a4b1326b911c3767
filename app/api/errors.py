"""Errors as clients of OpenAI's protocol read them: one JSON shape, and a status that says whose fault it was."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.api.queue import QueueFullError
from indexes.errors import DamagedIndexError, IndexStoreError, PromptTooLongError, QuotewrightError

logger = logging.getLogger(__name__)

LONGEST_MESSAGE = 2000  # a message may hold what the client sent
CODES = {401: "invalid_api_key", 403: "forbidden", 404: "not_found", 408: "timeout", 413: "request_too_large"}


class UnknownModelError(QuotewrightError):
    """A request names a model that is not served."""


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in ASCII: names of files may hold what UTF-8 cannot."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, headers, "application/json")


def error_object(message: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    kind = kind if status < 500 else "server_error"
    message = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + " ..."
    return {"error": {"message": message, "type": kind, "param": param, "code": code or CODES.get(status)}}


def error_response(
    message: str,
    status: int,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as a response."""
    return json_response(error_object(message, status, param, code), status, headers)


def described(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the body for whatever went wrong while an answer was being written."""
    if isinstance(error, QueueFullError):
        return 429, error_object(str(error), 429, code="queue_full")
    if isinstance(error, UnknownModelError):
        return 404, error_object(str(error), 404, "model", "model_not_found")
    if isinstance(error, PromptTooLongError):
        return 400, error_object(str(error), 400, code="context_length_exceeded")
    if isinstance(error, IndexStoreError):
        status = 409 if isinstance(error, DamagedIndexError) else 404
        return status, error_object(str(error), status, "index", "index_not_usable")
    if isinstance(error, QuotewrightError):
        return 400, error_object(str(error), 400)
    logger.error("a request could not be answered", exc_info=error)
    return 500, error_object("the server failed; its log says why", 500)


def where(location: Sequence[Any]) -> str:
    """A field as a path without the names of unions' members: messages.0.role."""
    kept = [str(part) for part in location if isinstance(part, int) or str(part).isidentifier()]
    return ".".join(part for part in kept if part not in ("body", "str", "query"))


def handle_errors(application: FastAPI) -> None:
    """Have every error of the application answered in this shape."""

    @application.exception_handler(RequestValidationError)
    async def refused(request: Request, error: RequestValidationError) -> Response:
        problems = [(where(item["loc"]), str(item["msg"]).removeprefix("Value error, ")) for item in error.errors()]
        message = "; ".join(f"{place or 'the body'}: {text}" for place, text in problems)
        if not request.headers.get("content-type", "").lower().startswith("application/json"):
            message = f"send JSON with the header Content-Type: application/json ({message})"
        return error_response(message, 400, problems[0][0] or None)

    @application.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        unread = {"Connection": "close"} if error.status_code in (408, 413) else {}  # the rest of the body is not read
        return error_response(str(error.detail), error.status_code, headers={**(error.headers or {}), **unread})

    @application.exception_handler(QuotewrightError)
    async def refused_by_us(request: Request, error: QuotewrightError) -> Response:
        status, content = described(error)
        headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, QueueFullError) else None
        return json_response(content, status, headers)

    @application.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        status, content = described(error)
        return json_response(content, status)
