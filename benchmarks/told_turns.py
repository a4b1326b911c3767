"""What telling a model about earlier turns does to its answers: written follow-ups, answered with several prompts.

The passages are the same for every form. Earlier answers are the model's own, as in a real conversation. An answer says
what is wanted if it holds most words of a wanted phrase; it repeats the last answer if it holds a run of its words and
does not say what is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.answering.prompt import INSTRUCTIONS, Message, fold, question_messages
from app.answering.spans import Tracer
from app.documents.indexing import build_python_docs
from benchmarks.conditions import conditions
from benchmarks.follow_ups_run import STANDING_ALONE, Dialogue, read_dialogues
from retrieval.conversation import Turn
from retrieval.follow_ups import goes_back
from retrieval.indexing import Progress
from retrieval.python_docs import PYTHON_DOCS

SAID = 0.8  # of a wanted phrase's words
RUN = 8  # words that repeat an answer
OPTIONS = AnswerOptions(max_new_tokens=96)

Form = Callable[[str, list[str], Sequence[Turn]], list[Message]]


def _with_line(before: str) -> Form:
    """The question with a line before it, if it goes back to the last turn."""

    def form(question: str, passages: list[str], turns: Sequence[Turn]) -> list[Message]:
        line = before.format(question=turns[-1].question, answer=fold(turns[-1].answer)) if goes_back(question) else ""
        parts = [*(fold(passage) for passage in reversed(passages)), f"{line}Question: {question}\nAnswer:"]
        return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "\n\n".join(parts)}]

    return form


FORMS: dict[str, Form] = {
    "nothing": _with_line(""),
    "the last question as a line": _with_line("Earlier question: {question}\n"),
    "the last question and answer as lines": _with_line("Question: {question}\nAnswer: {answer}\n\n"),
    "the last turn": lambda question, passages, turns: question_messages(question, passages, turns[-1:]),
}


def run(engine: Engine, half: str, progress: Progress) -> dict[str, Any]:
    """Answer every dialogue's question with each form."""
    build_python_docs(engine, progress)
    folder = engine.paths.indexes / PYTHON_DOCS
    index = engine.open(folder)
    dialogues, left_out = read_dialogues(index.passages, half)
    results: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for done, dialogue in enumerate(dialogues):
        progress("Conversations", done, len(dialogues))
        turns: list[Turn] = []
        for turn in dialogue.turns:
            *_, answer = engine.ask(turn.question, folder, turns, OPTIONS)
            turns.append(Turn(turn.question, answer.text))
        found = engine.find(dialogue.question, folder, None, turns)
        name = "standing alone" if dialogue.kind in STANDING_ALONE else "follow-ups"
        for form, write in FORMS.items():
            messages = write(dialogue.question, [item.passage.text for item in found], turns)
            *_, answer = engine.complete(messages, found, OPTIONS)
            results.setdefault((name, form), []).append(judged(answer.text, dialogue, turns[-1].answer))
    progress("Conversations", len(dialogues), len(dialogues))
    lines = [
        {
            "dialogues": name,
            "told": form,
            "count": len(answers),
            "says what is wanted": round(sum(said for said, _ in answers) / len(answers), 3),
            "repeats the last answer": round(sum(repeats for _, repeats in answers) / len(answers), 3),
        }
        for (name, form), answers in results.items()
    ]
    chosen = conditions(half=half, dialogues=len(dialogues), left_out=left_out, model=engine.profile.model,
                        dtype=engine.dtype_name, top_k=engine.profile.top_k)  # fmt: skip
    return {"conditions": chosen, "ways": lines}


def judged(text: str, dialogue: Dialogue, last: str) -> tuple[bool, bool]:
    """Whether an answer says what is wanted, and whether it repeats the last one instead."""
    said = any(_share(phrase, text) >= SAID for phrase in dialogue.phrases)
    return said, not said and bool(Tracer([("last", last)], RUN).spans(text))


def _share(phrase: str, text: str) -> float:
    words, held = re.findall(r"\w+", phrase.lower()), set(re.findall(r"\w+", text.lower()))
    return sum(word in held for word in words) / len(words)
