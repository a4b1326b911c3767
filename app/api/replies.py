"""What the server replies, for the OpenAPI document: replies are written as plain objects, and tests hold both
together. Objects may gain fields."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

Finish = Literal["stop", "length", "context", "cancelled", "repetition", "nothing-found"]


class ErrorDetail(BaseModel):
    """What was wrong. `param` is the field, as a path."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(BaseModel):
    """Every error has this shape, OpenAI's."""

    error: ErrorDetail


class PassageReply(BaseModel):
    """A passage that the model read, best first; the score is comparable within one answer.

    relevance is the probability that it is about the question; null where nobody judged.
    """

    id: str
    source: str
    page: int | None
    start: int
    score: float
    relevance: float | None
    text: str


class SpanReply(BaseModel):
    """answer[start:end] stands in the passage at [passage_start:passage_end], in characters (code points)."""

    start: int
    end: int
    passage_id: str
    passage_start: int
    passage_end: int


class StatsReply(BaseModel):
    """Figures of the answer; times in seconds."""

    drafter: str
    prompt_tokens: int
    new_tokens: int
    forward_passes: int
    draft_nodes: int
    accept_length: float
    copied_fraction: float
    retrieval_s: float
    time_to_first_token_s: float
    decode_s: float
    total_s: float
    tokens_per_s: float


class AnswerReply(BaseModel):
    """An answer with its passages, spans and figures."""

    question: str
    answer: str
    passages: list[PassageReply]
    spans: list[SpanReply]
    stats: StatsReply
    finished: Finish
    notes: list[str]


class TraceReply(BaseModel):
    """What Quotewright adds to a chat completion. Passages are the `references` and the messages ("message-0", ...)."""

    passages: list[PassageReply]
    spans: list[SpanReply]
    stats: StatsReply
    finished: Finish
    notes: list[str]


class MessageReply(BaseModel):
    """The answer."""

    role: Literal["assistant"]
    content: str
    refusal: None


class ChoiceReply(BaseModel):
    """The only choice."""

    index: int
    message: MessageReply
    logprobs: None
    finish_reason: Literal["stop", "length"]


class Usage(BaseModel):
    """Tokens read and written, a stop token included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatReply(BaseModel):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChoiceReply]
    usage: Usage
    quotewright: TraceReply


class ModelReply(BaseModel):
    """A model that can be named in requests; `kind` says in which."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    kind: Literal["chat", "embeddings"]


class ModelsReply(BaseModel):
    """All models."""

    object: Literal["list"]
    data: list[ModelReply]


class IndexReply(BaseModel):
    """An index that can be asked."""

    id: str
    object: Literal["index"]


class IndexesReply(BaseModel):
    """All indexes."""

    object: Literal["list"]
    data: list[IndexReply]


class EmbeddingReply(BaseModel):
    """A unit vector: numbers, or little-endian float32 in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(BaseModel):
    """Tokens that the encoder read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(BaseModel):
    """Vectors, in the order of the texts."""

    object: Literal["list"]
    data: list[EmbeddingReply]
    model: str
    usage: EmbeddingsUsage


class HealthReply(BaseModel):
    """The server is there; `queued` are requests that the model writes for or that wait for it."""

    status: Literal["ok"]
    queued: int
