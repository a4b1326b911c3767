"""What there is to ask: models, indexes, and whether the server is there."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from app.api.errors import UnknownModelError, json_response
from app.api.replies import HealthReply, IndexesReply, ModelReply, ModelsReply
from app.api.service import Asker, Served, Service
from indexes.store import names

router = APIRouter()


def _models(served: Service) -> list[dict[str, Any]]:
    kinds = {served.chat_model: "chat", served.embedding_model: "embeddings"}
    head = {"object": "model", "created": served.started_at, "owned_by": "quotewright"}
    return [{"id": name, **head, "kind": kind} for name, kind in kinds.items()]


@router.get("/v1/models", summary="The models that are served", response_model=ModelsReply)
async def models(served: Served, asker: Asker) -> Response:
    """The model that answers, and the encoder."""
    return json_response({"object": "list", "data": _models(served)})


@router.get("/v1/models/{model:path}", summary="One of the models", response_model=ModelReply)
async def model(model: str, served: Served, asker: Asker) -> Response:
    """A model by its id, which may hold slashes."""
    for one in _models(served):
        if one["id"] == model:
            return json_response(one)
    raise UnknownModelError(f"there is no model {model!r} here; /v1/models lists what there is")


@router.get("/v1/indexes", summary="The indexes that can be asked", response_model=IndexesReply)
async def indexes(served: Served, asker: Asker) -> Response:
    """Those made with `python app.py index`."""
    known = names(served.engine.paths.indexes)
    return json_response({"object": "list", "data": [{"id": name, "object": "index"} for name in known]})


@router.get("/healthz", summary="Whether the server is there", response_model=HealthReply)
async def healthz(served: Served) -> Response:
    """Needs no key and loads nothing."""
    return json_response({"status": "ok", "queued": len(served.queue)})
