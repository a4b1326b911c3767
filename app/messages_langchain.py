"""LangChain's messages and documents as the engine takes them, and its answers as LangChain's messages.

Text only: images and tools are refused, for the models here read neither.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ChatMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata

from app.answering.prompt import Message, checked
from indexes.errors import SettingError
from retrieval.conversation import Turn
from retrieval.finder import Found

if TYPE_CHECKING:
    from app.answering.answers import Answer

FINISH_REASONS = {"length": "length", "context": "length", "cancelled": "cancelled"}  # all others: stop
SYSTEM_NOT_TOLD = "system messages were not told to the model: with passages of its own, Quotewright writes the prompt"


def told(messages: Sequence[BaseMessage]) -> list[Message]:
    """The messages with their roles. Raises SettingError for what is no text and for tools."""
    return [{"role": _role(message), "content": storable(text_of(message))} for message in messages]


def storable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage) and not message.tool_calls:
        return "assistant"
    if isinstance(message, SystemMessage):
        return "system"
    if isinstance(message, ChatMessage):
        return message.role
    what = "an AIMessage with tool calls" if isinstance(message, AIMessage) else f"a {type(message).__name__}"
    raise SettingError(f"{what} cannot be told: the models here call no tools; leave it out")


def text_of(message: BaseMessage) -> str:
    """A message's text parts. Raises SettingError for others; what other models thought is passed over."""
    if isinstance(message.content, str):
        return message.content
    parts: list[str] = []
    for block in message.content:
        kind = "text" if isinstance(block, str) else block.get("type")
        if kind == "text":
            parts.append(block if isinstance(block, str) else str(block.get("text", "")))
        elif not isinstance(message, AIMessage):
            raise SettingError(f"a message has a part of the type {kind!r}; the models here read text only")
    return "".join(parts)


def conversation(messages: Sequence[BaseMessage]) -> tuple[str, list[Turn], tuple[str, ...]]:
    """The last question, the turns before it, and what people should know of what is left out.

    Raises SettingError if the last message is not a person's.
    """
    every = told(messages)
    spoken = [message for message in every if message["role"] not in ("system", "developer")]
    said = checked(spoken)
    if said[-1]["role"] != "user":
        raise SettingError("the last message must be a HumanMessage: it is the question that passages are found for")
    turns = [
        Turn(asked["content"], answered["content"])
        for asked, answered in itertools.pairwise(said)
        if asked["role"] == "user"
    ]
    return said[-1]["content"], turns, () if spoken == every else (SYSTEM_NOT_TOLD,)


def references_of(references: Any) -> list[Found]:
    """Documents, texts or (id, text) pairs as passages; texts alone are called "1", "2" and so on."""
    from retrieval.finder_langchain import found_of, scored_documents

    if isinstance(references, (str, Document)) or not isinstance(references, Sequence):
        raise SettingError(f"references is a {type(references).__name__}; give a list of Documents or texts")
    documents = [_document(item, str(place)) for place, item in enumerate(references, start=1)]
    return found_of(scored_documents(documents, "references"))


def _document(item: Any, place: str) -> Document:
    if isinstance(item, Document):
        return item
    name, text = (place, item) if isinstance(item, str) else item if isinstance(item, (tuple, list)) else (None, None)
    if not isinstance(name, str) or not isinstance(text, str):
        raise SettingError(f"references has {item!r:.80}; give Documents, texts or (id, text) pairs of strings")
    return Document(storable(text), id=name)


# Answers


def message_of(answer: Answer, model: str) -> AIMessage:
    """A finished answer, with what is known of it."""
    return AIMessage(answer.text, usage_metadata=_usage(answer), response_metadata=metadata_of(answer, model))


def chunk_of(answer: Answer, sent: int, model: str) -> AIMessageChunk | None:
    """What an answer's state has more than its first `sent` characters; the last chunk holds what is known of it."""
    text = answer.text[sent:]
    if answer.finished:
        return AIMessageChunk(
            content=text,
            usage_metadata=_usage(answer),
            response_metadata=metadata_of(answer, model),
            chunk_position="last",
        )
    return AIMessageChunk(content=text) if text else None


def _usage(answer: Answer) -> UsageMetadata:
    read, written = answer.stats.prompt_tokens, answer.stats.new_tokens
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


def metadata_of(answer: Answer, model: str) -> dict[str, Any]:
    """What LangChain calls response_metadata: passages, spans in them, figures; plain values."""
    told = answer.to_json()
    return {
        "model_name": model,
        "finish_reason": FINISH_REASONS.get(answer.finished or "", "stop"),
        "finished": answer.finished,
        "passages": told["passages"],
        "spans": told["spans"],
        "figures": told["stats"],
        "notes": told["notes"],
    }
