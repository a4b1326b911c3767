"""What a `QuotewrightChat`, and each call of it, can choose, under the names that LangChain's users know.

Choices are checked when they are made; what they are checked by is imported only if there is something to check.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from app.setup.settings import load_settings
from indexes.errors import SettingError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from app.answering.asking import AnswerOptions
    from decoding.sampling import Sampling

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed")
PASSAGES = ("index", "retriever", "references")


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _told(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{name} cannot be chosen here; what can be is {', '.join(Choices.model_fields)}"
    reason = error.get("ctx", {}).get("error") or error["msg"]
    return f"{name} is {error['input']!r:.80}: {reason}" if name else str(reason)


class Choices(BaseModel):
    """None leaves a choice to the settings. Raises ValueError, or its kind SettingError, for what cannot be."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())

    model: str = ""
    """The model that answers: a hub id or a folder; by default the one that the settings name."""
    index: str | Path | None = None
    """Answer from this index: its name, or its folder."""
    retriever: Any = None
    """Answer from what this finds: a LangChain retriever or vector store, or an object with find()."""
    references: Any = None
    """Documents, texts or (id, text) pairs that the prompt holds: drafts copy from them, spans are found in them."""
    k: int | None = Field(default=None, ge=1, le=100)
    """How many passages the model reads."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    """How many of the likeliest tokens are drawn from; `k` is the number of passages."""
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    stop: Annotated[list[str] | None, BeforeValidator(_texts)] = None
    """Texts at which an answer ends, before them."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds after which TimeoutError is raised instead of an answer."""
    drafter: str | None = None
    max_nodes: int | None = Field(default=None, ge=0)
    settings: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Any settings of Quotewright by name, such as {"profile": "gpu"}; equal ones share the loaded models."""
    api_key: SecretStr | None = None
    """The key of another server that answers, as settings={"engine": "openai", "base_url": ...} say."""
    person: str = Field(default_factory=lambda: uuid.uuid4().hex)
    """Whose answers drafts may learn and copy from; by default those of this object alone."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in PASSAGES if getattr(self, name) is not None]
        if len(given) > 1:
            raise SettingError(f"{' and '.join(given)} are given; passages come from one of them")
        if self.stop or any(getattr(self, name) is not None for name in SAMPLING):
            self.options()
        self.model = load_settings(**self.engine_settings).resolved().model
        return self

    def of_call(self, **choices: Any) -> Choices:
        """These choices with those of one call in their place. Raises SettingError."""
        kept = {name: getattr(self, name) for name in Choices.model_fields}
        try:
            return Choices(**kept | {name: value for name, value in choices.items() if value is not None})
        except ValidationError as error:
            raise SettingError("; ".join(_told(item) for item in error.errors())) from error

    @property
    def engine_settings(self) -> dict[str, Any]:
        """What the engine that answers is made of."""
        chosen = self.settings | ({"model": self.model} if self.model else {})
        if self.api_key and chosen.get("engine") == "openai":  # here no key is asked for
            chosen["api_key"] = self.api_key.get_secret_value()
        return chosen

    def options(self, sampling: Sampling | None = None) -> AnswerOptions:
        """The choices of one answer; `sampling` holds the values of what is not chosen."""
        from dataclasses import replace

        from app.answering.asking import AnswerOptions
        from decoding.sampling import GREEDY

        chosen = {name: value for name in SAMPLING if (value := getattr(self, name)) is not None}
        drawn = replace(sampling or GREEDY, **chosen) if chosen else None
        return AnswerOptions(self.drafter, self.max_nodes, self.max_tokens, self.k, drawn, tuple(self.stop or ()))
