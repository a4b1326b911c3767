"""/v1/embeddings: texts as the encoder's unit vectors, in OpenAI's protocol."""

from __future__ import annotations

import base64
from typing import Any

from fastapi import APIRouter, Request, Response

from app.answering.embedding import Embedded, embed
from app.api.errors import json_response
from app.api.queue import Job
from app.api.replies import EmbeddingsReply
from app.api.requests import EmbeddingsRequest
from app.api.service import Asker, Served, begin
from app.api.streams import last
from indexes.errors import SettingError

router = APIRouter()


def _value(vector: Any, encoding: str) -> list[float] | str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoding == "base64" else vector.tolist()


@router.post("/v1/embeddings", summary="Texts as vectors", response_model=EmbeddingsReply)
async def embeddings(body: EmbeddingsRequest, request: Request, served: Served, asker: Asker) -> Response:
    """One unit vector per text, in their order."""
    served.check_model(body.model, served.embedding_model)
    job: Job[Embedded] = begin(
        request, served, lambda cancelled: embed(served.engine, body.texts, body.input_type == "query", cancelled)
    )
    found = await last(job.states())
    dimension = found.vectors.shape[1]
    if body.dimensions not in (None, dimension):
        raise SettingError(f"{served.embedding_model} has {dimension} dimensions, not {body.dimensions}")
    data = [
        {"object": "embedding", "index": place, "embedding": _value(vector, body.encoding_format)}
        for place, vector in enumerate(found.vectors)
    ]
    used = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
    return json_response({"object": "list", "data": data, "model": served.embedding_model, "usage": used})
