"""What every route needs: the engine, the queue before it, the limits; and the way from a request to a job."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.answering.asking import AnswerOptions
from app.api.errors import UnknownModelError
from app.api.queue import Job, Queue, State, Work
from app.api.requests import SEEDS, Options, ReferenceText
from indexes.errors import SettingError

if TYPE_CHECKING:
    from app.answering.engine import Engine
    from retrieval.finder import Finder

MESSAGE = "message-"  # begins the ids of messages among the passages of an answer
OURS = "quotewright"  # names whatever model is served


def model_name(model: str) -> str:
    """What clients call a model: its id, or a folder's name without the way to it."""
    return Path(model).name if Path(model).is_absolute() or Path(model).exists() else model


@dataclass(frozen=True, slots=True)
class Service:
    """What the application serves, and its limits; `source` is asked where a question names none."""

    engine: Engine
    queue: Queue
    source: Path | Finder
    most_new_tokens: int
    started_at: int

    @property
    def chat_model(self) -> str:
        """The name of the model that answers."""
        return model_name(self.engine.profile.model)

    @property
    def embedding_model(self) -> str:
        """The name of the encoder."""
        return model_name(self.engine.profile.encoder)

    @property
    def fingerprint(self) -> str:
        """Changes when the same request with the same seed may be answered in other words."""
        settings = self.engine.settings
        parts = (self.engine.profile.model, settings.dtype, settings.target, settings.device)
        return "qw-" + hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    def check_model(self, asked: str | None, served: str) -> None:
        """Raises UnknownModelError unless the model asked for is the one served."""
        if asked not in (None, OURS, served):
            raise UnknownModelError(f"there is no model {asked!r} here; use {served!r}, or leave `model` out")

    def options(
        self, body: Options, new_tokens: int | None, sample_top_k: int | None, passages: int | None = None
    ) -> AnswerOptions:
        """What a request chooses. Raises SettingError for what cannot be."""
        if new_tokens is not None and new_tokens > self.most_new_tokens:
            raise SettingError(f"an answer may have up to {self.most_new_tokens} tokens here, not {new_tokens}")
        given = {
            "temperature": body.temperature, "top_p": body.top_p, "top_k": sample_top_k, "min_p": body.min_p,
            "repetition_penalty": body.repetition_penalty, "seed": None if body.seed is None else body.seed % SEEDS,
        }  # fmt: skip
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return AnswerOptions(
            drafter=body.drafter,
            max_nodes=body.max_nodes,
            max_new_tokens=new_tokens,
            top_k=passages,
            sampling=dataclasses.replace(self.engine.sampling, **chosen) if chosen else None,
            stop=body.stops,
        )


def service(request: Request) -> Service:
    """The application's service."""
    served: Service = request.app.state.service
    return served


_bearer = HTTPBearer(auto_error=False, description="One of the setting api_keys; none is needed where none is set.")


def asker(request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]) -> str:
    """Who asks, as the gate noted: a key's name, or "" for everybody."""
    person: str = request.state.person
    return person


Served = Annotated[Service, Depends(service)]
Asker = Annotated[str, Depends(asker)]


def person_of(asker: str, user: str | None) -> str | None:
    """Whose earlier answers may be drafted from: those of the same key and the same `user`; None: nobody's."""
    if user:
        return f"{asker or 'open'}/{user}"
    return asker or None


def named(references: Sequence[ReferenceText]) -> list[tuple[str, str]]:
    """References as (id, text) pairs. Raises SettingError where two have one id: spans could not tell them apart."""
    pairs = [(item.id or str(number), item.text) for number, item in enumerate(references, start=1)]
    known: set[str] = set()
    for name, _ in pairs:
        if name in known or name.startswith(MESSAGE):
            raise SettingError(f"references: the id {name!r} stands for another text already; give each its own")
        known.add(name)
    return pairs


def begin(request: Request, served: Service, work: Work[State]) -> Job[State]:
    """Queue work that a client waits for; it is cancelled when the client goes."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return served.queue.begin(work, gone)


def now() -> int:
    """The time, in seconds since 1970."""
    return int(time.time())
