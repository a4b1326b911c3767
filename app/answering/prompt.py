"""Writes the prompt: short answers in the passages' own words, cut to what the model can read.

The order and the wording are what a tiny model answers well to: few passages, white space folded, the best one
last, just before the question. Text from documents and people cannot forge the template's special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from indexes.errors import ModelError, PromptTooLongError, SettingError
from retrieval.conversation import Turn

Message = dict[str, str]

INSTRUCTIONS = (
    "You answer questions from the given text. Answer in one or two sentences, using the words of the text. "
    "If the text does not contain the answer, say so."
)
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}  # as templates call them


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, how many of the passages (best first) they hold, and how many earlier turns (latest last)."""

    tokens: tuple[int, ...]
    passages: int
    turns: int


def fold(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


class PromptWriter:
    """Writes prompts with one tokenizer, within one context limit."""

    def __init__(self, tokenizer: Any, context_limit: int) -> None:
        self._tokenizer = tokenizer
        self._context_limit = context_limit
        self._special = sorted(set(tokenizer.all_special_tokens) | set(tokenizer.get_added_vocab()), key=len)

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a piece of text alone."""
        return tuple(self._tokenizer(self.harmless(text), add_special_tokens=False).input_ids)

    def harmless(self, text: str) -> str:
        """The text with every special token in it broken by a space, so that it is read as text."""
        for token in self._special:
            if len(token) > 1 and token.strip():
                text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def write(
        self, question: str, passages: Sequence[str], turns: Sequence[Turn] = (), max_new_tokens: int = 256
    ) -> Prompt:
        """The longest prompt that fits: earlier turns are dropped first, then the lowest-ranked passages.

        Raises PromptTooLongError when the question alone does not fit beside an answer of `max_new_tokens`
        (or of a quarter of the context, if that is less).
        """
        limit = self._context_limit - min(max_new_tokens, self._context_limit // 4)
        kept_passages, kept_turns = list(passages), list(turns)
        while True:
            tokens = self._tokens(question_messages(question, kept_passages, kept_turns))
            if len(tokens) <= limit:
                return Prompt(tokens, len(kept_passages), len(kept_turns))
            if kept_turns:
                kept_turns.pop(0)
            elif kept_passages:
                kept_passages.pop()
            else:
                raise PromptTooLongError(
                    f"the question needs {len(tokens)} tokens; the model has room for {limit}: ask a shorter one"
                )

    def write_messages(self, messages: Sequence[Message]) -> Prompt:
        """A prompt of whole messages, by the model's chat template. Raises PromptTooLongError, SettingError."""
        tokens = self._tokens(checked(messages))
        if len(tokens) >= self._context_limit:
            raise PromptTooLongError(
                f"the messages have {len(tokens)} tokens; the model reads at most {self._context_limit - 1}: "
                "shorten them"
            )
        return Prompt(tokens, 0, 0)

    def _tokens(self, messages: Sequence[Message]) -> tuple[int, ...]:
        harmless = [{"role": message["role"], "content": self.harmless(message["content"])} for message in messages]
        try:
            text = self._templated(harmless)
        except TemplateError:  # some templates have no system role, Gemma's for one
            text = self._templated(_without_system(harmless))
        return tuple(self._tokenizer(text, add_special_tokens=False).input_ids)

    def _templated(self, messages: list[Message]) -> str:
        try:
            return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        except ValueError as error:  # transformers says so when there is no template
            raise ModelError(f"the model cannot chat: {error}; choose one tuned for instructions") from error


def question_messages(question: str, passages: Sequence[str], turns: Sequence[Turn]) -> list[Message]:
    """What a model is told for a question: instructions, earlier turns, passages (given best first), the question."""
    messages = [{"role": "system", "content": INSTRUCTIONS}]
    for turn in turns:
        messages.append({"role": "user", "content": turn.question})
        messages.append({"role": "assistant", "content": turn.answer})
    parts = [fold(passage) for passage in reversed(passages)] + [f"Question: {question}\nAnswer:"]
    return [*messages, {"role": "user", "content": "\n\n".join(parts)}]


def checked(messages: Sequence[Message]) -> list[Message]:
    """The messages as they can be encoded, with neighbours of one role joined, which strict templates ask for.

    Raises SettingError for an unknown role, or when there is nothing to answer.
    """
    joined: list[Message] = []
    for message in messages:
        role = ROLES.get(message["role"])
        if role is None:
            raise SettingError(f"a message has the role {message['role']!r}; choose one of {', '.join(ROLES)}")
        content = message["content"].encode("utf-8", "replace").decode("utf-8")
        if joined and joined[-1]["role"] == role:
            content = f"{joined.pop()['content']}\n\n{content}"
        joined.append({"role": role, "content": content})
    if not any(message["content"].strip() for message in joined if message["role"] == "user"):
        raise SettingError("there is no user message with text in it; ask something")
    return joined


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with what the system says put before the first one of a user."""
    told = [message["content"] for message in messages if message["role"] == "system"]
    rest = [message for message in messages if message["role"] != "system"]
    first = next(place for place, message in enumerate(rest) if message["role"] == "user")
    rest[first] = {"role": "user", "content": "\n\n".join([*told, rest[first]["content"]])}
    return rest
