"""Recorded answers and what they were written from: what simulation replays, as tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.data import read_lines
from decoding.drafter import DraftRequest, Reference
from indexes.errors import SettingError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One example. The prompt is its references in a row.

    Examples of one `conversation` quote each other, so no division may part them.
    """

    references: tuple[Reference, ...]
    answer: tuple[int, ...]
    conversation: str = ""

    @property
    def request(self) -> DraftRequest:
        """What a drafter is told."""
        return DraftRequest(tuple(token for one in self.references for token in one.tokens), self.references)


def text_encoder(tokenizer: Any) -> Callable[[str], list[int]]:
    """Encodes a text alone, without special tokens."""

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False).input_ids)

    return encode


def read_recorded(path: Path, encode: Callable[[str], Sequence[int]]) -> list[Recorded]:
    """LLMA's form (query, docs, result.text) or MT-Bench answers (choices[0].turns, which may copy from earlier turns).

    Every text is encoded alone, without special tokens. Raises SettingError for another form.
    """

    def tokens(text: str) -> tuple[int, ...]:
        return tuple(encode(_only(str, text)))

    found: list[Recorded] = []
    try:
        for number, line in enumerate(read_lines(path)):
            conversation = f"{path.name}, line {number + 1}"
            if "docs" in line:
                documents = [Reference(tokens(doc), "document") for doc in _only(list, line["docs"])]
                references = (*documents, Reference(tokens(line["query"]), "question"))
                found.append(Recorded(references, tokens(line["result"]["text"]), conversation))
                continue
            turns = [tokens(turn) for turn in _only(list, line["choices"][0]["turns"])]
            for index, turn in enumerate(turns):
                earlier = tuple(Reference(text, "turn") for text in turns[:index])
                found.append(Recorded(earlier, turn, conversation))
    except (KeyError, IndexError, TypeError) as error:
        raise SettingError(f"{path} holds no recorded answers (fields query, docs, result.text): {error!r}") from error
    return [example for example in found if len(example.answer) > 1]


def holds_answers(path: Path) -> bool:
    """Whether the first line is in one of these forms. Raises SettingError for a file that is no JSON lines."""
    first = next(iter(read_lines(path)), {})
    return "choices" in first or {"query", "docs", "result"} <= set(first)


def _only(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    return value
