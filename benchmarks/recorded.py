"""Recorded answers and what they were written from: what simulation replays, as tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data import read_lines
from decoding.drafter import DraftRequest, Reference
from indexes.errors import SettingError


@dataclass(frozen=True, slots=True)
class Recorded:
    """One example. The prompt is its references in a row."""

    references: tuple[Reference, ...]
    answer: tuple[int, ...]

    @property
    def request(self) -> DraftRequest:
        """What a drafter is told."""
        return DraftRequest(tuple(token for one in self.references for token in one.tokens), self.references)


def read_recorded(path: Path, encode: Callable[[str], Sequence[int]]) -> list[Recorded]:
    """LLMA's form (query, docs, result.text) or MT-Bench answers (choices[0].turns, which may copy from earlier turns).

    Every text is encoded alone, without special tokens. Raises SettingError for another form.
    """

    def reference(text: str, kind: str) -> Reference:
        return Reference(tuple(encode(text)), kind)

    found: list[Recorded] = []
    try:
        for line in read_lines(path):
            if "docs" in line:
                documents = [reference(doc, "document") for doc in line["docs"]]
                references = (*documents, reference(line["query"], "question"))
                found.append(Recorded(references, tuple(encode(line["result"]["text"]))))
                continue
            turns = line["choices"][0]["turns"]
            for index in range(len(turns)):
                earlier = tuple(reference(turn, "turn") for turn in turns[:index])
                found.append(Recorded(earlier, tuple(encode(turns[index]))))
    except (KeyError, IndexError, TypeError) as error:
        raise SettingError(f"{path} holds no recorded answers (fields query, docs, result.text): {error!r}") from error
    return [example for example in found if len(example.answer) > 1]
