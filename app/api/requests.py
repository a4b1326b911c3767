"""What clients may send: the bodies of requests, checked strictly. Fields that are not named here are ignored, as
OpenAI's clients expect; fields that would change the answer and cannot be honoured are refused by name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

MOST_STOPS = 4
MOST_INPUTS = 2048
MOST_REFERENCES = 1000
MOST_TURNS = 1000
SEEDS = 2**64

Text = Annotated[str, Field(min_length=1)]
TopK = Annotated[int | None, Field(ge=0, le=2**31, description="Draw from so many likeliest tokens; 0 is all.")]
MOST_CHARS = 2**30  # more than a body may hold; a limited text is also checked to be one: no half surrogate pairs
AnyText = Annotated[str, Field(max_length=MOST_CHARS)]
StopText = Annotated[str, Field(min_length=1, max_length=1000)]


class Body(BaseModel):
    """A JSON object whose values have the documented types: "5" is no number, and NaN is none either."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


class Options(Body):
    """What one request chooses for itself; what is left out is as in the server's settings."""

    temperature: float | None = Field(None, description="0 (greedy), or 0.01 to 100.")
    top_p: float | None = Field(None, ge=0, le=1)
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, description="0.01 to 100; 1 is none.")
    seed: int | None = Field(None, ge=-SEEDS // 2, lt=SEEDS, description="Counts modulo 2^64.")
    stop: StopText | Annotated[list[StopText], Field(max_length=MOST_STOPS)] | None = Field(
        None, description="Texts at which the answer ends, before them."
    )
    drafter: str | None = Field(None, description="Changes how fast the answer comes, never its words.")
    max_nodes: int | None = Field(None, ge=0, le=1024)
    user: str | None = Field(None, max_length=512, description="Whose earlier answers may be drafted from.")
    stream: bool | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop texts, however they were given."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


class ReferenceText(Body):
    """A text that the answer is traced in and drafted from; without an id it is numbered from 1."""

    id: str | None = Field(None, min_length=1, max_length=512)
    text: Text


References = Annotated[list[ReferenceText], Field(max_length=MOST_REFERENCES)]


class TextPart(Body):
    """A part of a message's content; only text is understood."""

    type: Literal["text"]
    text: AnyText


class ChatMessage(Body):
    """A message to the model. "developer" is read as "system"."""

    role: Literal["system", "developer", "user", "assistant"]
    content: AnyText | list[TextPart]

    @property
    def text(self) -> str:
        """The content as one text."""
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


class StreamOptions(Body):
    """Choices of a stream."""

    include_usage: bool | None = None


class ChatRequest(Options):
    """A chat completion, as OpenAI's protocol has it, with `references` and the options of drafting beside it."""

    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "n": (1,), "logprobs": (False,), "top_logprobs": (0,), "frequency_penalty": (0,), "presence_penalty": (0,),
        "logit_bias": ({},), "tools": ([],), "tool_choice": ("none", "auto"), "functions": ([],),
        "response_format": ({"type": "text"},), "modalities": (["text"],), "audio": (), "prediction": (),
    }  # fmt: skip

    model: str | None = Field(None, description="One of /v1/models.")
    messages: list[ChatMessage] = Field(min_length=1)
    references: References = []
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    top_k: TopK = None
    stream_options: StreamOptions | None = None
    n: Any = Field(None, description="1: there is one answer.")
    logprobs: Any = Field(None, description="Not supported.")
    top_logprobs: Any = Field(None, description="Not supported.")
    frequency_penalty: Any = Field(None, description="Not supported; use repetition_penalty.")
    presence_penalty: Any = Field(None, description="Not supported; use repetition_penalty.")
    logit_bias: Any = Field(None, description="Not supported.")
    tools: Any = Field(None, description="Not supported.")
    tool_choice: Any = Field(None, description="Not supported.")
    functions: Any = Field(None, description="Not supported.")
    response_format: Any = Field(None, description='{"type": "text"} only.')
    modalities: Any = Field(None, description='["text"] only.')
    audio: Any = Field(None, description="Not supported.")
    prediction: Any = Field(None, description="Not supported: give `references`, which are drafted from.")

    @field_validator(*NEUTRAL)
    @classmethod
    def _neutral(cls, value: Any, info: Any) -> Any:
        """Refuse what would change the answer and cannot be honoured; its neutral value is accepted."""
        allowed = cls.NEUTRAL[info.field_name]
        if value is None or any(type(value) in (type(one), float) and value == one for one in allowed):
            return value
        known = " or ".join(["null", *map(repr, allowed)])
        raise ValueError(f"this server does not support it; leave it out, or send {known}")


class EarlierTurn(Body):
    """A question of the conversation so far, and what was answered."""

    question: Text
    answer: AnyText


class AnswerRequest(Options):
    """A question over an index, or over `references` that come with it."""

    question: Text
    index: str | None = Field(None, description="One of /v1/indexes; left out, the server's own choice.")
    references: References | None = Field(None, description="Passages to answer from, instead of an index.")
    turns: Annotated[list[EarlierTurn], Field(max_length=MOST_TURNS)] = []
    top_k: int | None = Field(None, ge=1, le=100, description="How many passages the model reads.")
    sample_top_k: TopK = None
    max_new_tokens: int | None = Field(None, ge=1)


class EmbeddingsRequest(Body):
    """Texts to encode, as OpenAI's protocol has it. Texts longer than the encoder reads are cut there."""

    model: str | None = Field(None, description="One of /v1/models.")
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_INPUTS)]
    input_type: Literal["document", "query"] = "document"
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1, description="Only the encoder's own number of them.")
    user: str | None = Field(None, max_length=512)

    @property
    def texts(self) -> list[str]:
        """The texts, however they were given."""
        return [self.input] if isinstance(self.input, str) else self.input
