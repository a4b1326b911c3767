"""Recall of follow-up questions, and of questions that stand alone after a conversation about something else.

The dialogues in followups.jsonl were written for this, over Python's language reference; a passage is wanted if it
holds one of the wanted phrases. Weights were chosen on the half called "choose". "Rewritten by hand" asks what a person
would have asked without the conversation: a ceiling.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from app.answering.prompt import fold
from app.documents.indexing import build_python_docs
from benchmarks.conditions import conditions
from benchmarks.data import read_lines, read_squad
from benchmarks.retrieval import encoded
from indexes.errors import SettingError
from indexes.passage_store import PassageStore
from indexes.store import open_index, write_index
from retrieval.conversation import Turn
from retrieval.follow_ups import Asked, alone, in_context
from retrieval.indexing import Progress
from retrieval.python_docs import PYTHON_DOCS
from retrieval.retriever import Retriever

DIALOGUES = Path(__file__).with_name("followups.jsonl")
HALVES = ("report", "choose", "all")
STANDING_ALONE = ("topic change", "own topic")
DEPTHS = (1, 3, 5)
SQUAD_QUESTIONS = 400


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A question after some turns, and the rows of the passages that answer it: they hold one of the phrases.

    condensed says the question without its turns, in words of a person.
    """

    kind: str
    turns: tuple[Turn, ...]
    question: str
    condensed: str
    wanted: frozenset[int]
    phrases: tuple[str, ...] = ()


def question_before(dialogue: Dialogue) -> Asked:
    """How follow-ups were searched before: with the last question, which weighs half, whatever is asked."""
    question, earlier = dialogue.question, dialogue.turns[-1].question
    return Asked(question, (question, f"{earlier} {question}"), ((question, 1.0), (earlier, 0.5)), question)


WAYS: dict[str, Callable[[Dialogue], Asked]] = {
    "alone": lambda dialogue: alone(dialogue.question),
    "with the question before": question_before,
    "ours": lambda dialogue: in_context(dialogue.question, dialogue.turns),
    "rewritten by hand": lambda dialogue: alone(dialogue.condensed),
}


def read_dialogues(passages: PassageStore, half: str, path: Path = DIALOGUES) -> tuple[list[Dialogue], int]:
    """The dialogues of a half, and how many were left out since no passage holds what they want: the corpus differs a
    little between versions of Python. Raises SettingError."""
    if half not in HALVES:
        raise SettingError(f"half is {half!r}; choose one of {', '.join(HALVES)}")
    texts = [fold(text) for text in passages.texts()]
    dialogues: list[Dialogue] = []
    for line in read_lines(path):
        if half in (line["half"], "all"):
            wanted = {row for row, text in enumerate(texts) if any(phrase in text for phrase in line["wanted"])}
            turns = tuple(Turn(question, answer) for question, answer in line["turns"])
            dialogues.append(
                Dialogue(
                    line["kind"], turns, line["question"], line["condensed"], frozenset(wanted), tuple(line["wanted"])
                )
            )
    found = [dialogue for dialogue in dialogues if dialogue.wanted]
    return found, len(dialogues) - len(found)


def squad_dialogues(path: Path, seed: int = 0) -> tuple[list[str], list[Dialogue]]:
    """The paragraphs of a SQuAD file, and seeded questions after one that belongs to a paragraph far away."""
    paragraphs, questions = read_squad(path)
    chosen = random.Random(seed)
    dialogues: list[Dialogue] = []
    for question in chosen.sample(questions, min(SQUAD_QUESTIONS, len(questions))):
        far = [other for other in questions if abs(other.paragraph - question.paragraph) > len(paragraphs) // 4]
        other = chosen.choice(far or questions)
        turn = Turn(other.text, paragraphs[other.paragraph].partition(". ")[0])
        wanted = frozenset((question.paragraph,))
        dialogues.append(Dialogue("SQuAD, topic change", (turn,), question.text, question.text, wanted))
    return paragraphs, dialogues


def run(engine: Engine, half: str, data: Path | None, by_kind: bool, progress: Progress) -> dict[str, Any]:
    """Search every dialogue's question in every way."""
    build_python_docs(engine, progress)
    index = engine.open(engine.paths.indexes / PYTHON_DOCS)
    dialogues, left_out = read_dialogues(index.passages, half)
    groups = _groups(dialogues, by_kind)
    lines = [line for name, group in groups.items() for line in _ways(engine.retriever(index), name, group, progress)]
    if data is not None:
        lines += _squad(engine, data, progress)
    chosen = conditions(
        half=half, dialogues=len(dialogues), left_out=left_out, passages=len(index.passages),
        encoder=engine.profile.encoder, reranker=engine.profile.reranker,
        data=data.name if data else None, device=engine.device,
    )  # fmt: skip
    return {"conditions": chosen, "ways": lines}


def _groups(dialogues: Sequence[Dialogue], by_kind: bool) -> dict[str, list[Dialogue]]:
    groups: dict[str, list[Dialogue]] = {}
    for dialogue in dialogues:
        name = "standing alone" if dialogue.kind in STANDING_ALONE else "follow-ups"
        groups.setdefault(dialogue.kind if by_kind else name, []).append(dialogue)
    return groups


def _squad(engine: Engine, data: Path, progress: Progress) -> list[dict[str, Any]]:
    paragraphs, dialogues = squad_dialogues(data)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "squad"
        write_index(folder, engine.index_settings(), encoded(engine, paragraphs, progress))
        index = open_index(folder)
        lines = _ways(engine.retriever(index), dialogues[0].kind, dialogues, progress)
        index.passages.close()
    return lines


def _ways(retriever: Retriever, name: str, dialogues: Sequence[Dialogue], progress: Progress) -> list[dict[str, Any]]:
    lines = []
    for way, asked in WAYS.items():
        ranks: list[int | None] = []
        for done, dialogue in enumerate(dialogues):
            progress(f"{name}: {way}", done, len(dialogues))
            rows = [found.passage.row for found in retriever.rank(asked(dialogue)).reranked]
            ranks.append(next((rank for rank, row in enumerate(rows, start=1) if row in dialogue.wanted), None))
        progress(f"{name}: {way}", len(dialogues), len(dialogues))
        line: dict[str, Any] = {"dialogues": name, "count": len(dialogues), "way": way}
        for depth in DEPTHS:
            line[f"recall@{depth}"] = round(sum(rank is not None and rank <= depth for rank in ranks) / len(ranks), 3)
        lines.append(line)
    return lines
