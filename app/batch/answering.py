"""One question of a data set to one row of a run: asks the engine, scores the answer, and records what went wrong.

Every question stands for itself: nothing is kept from one to the next that drafts could copy from (the engine is asked
on nobody's behalf), so a row's figures do not depend on which questions came before it or on where a run was resumed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.answering.answers import Answer
from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.batch.citations import citation_scores, citations
from app.batch.questions import Question, Reading
from app.batch.scores import score
from indexes.errors import DocumentError
from retrieval.evidence import Evidence
from retrieval.finder import Finder, given

Row = dict[str, Any]

PLAIN = "plain"
# The settings that answers and figures depend on, beside the profile's. No secret is among them.
RECORDED = (
    "engine", "base_url", "remote_model", "profile", "target", "exact", "drafter", "datastore", "draft_model",
    "node_budget", "max_new_tokens", "temperature", "top_p", "sample_top_k", "min_p", "repetition_penalty", "seed",
    "candidates", "min_relevance", "min_span_words", "stop_repeats", "finder",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answerer:
    """`index`, a folder or a finder, is searched for questions that bring no passages; `compare` has each answered by
    plain decoding, too."""

    engine: Engine
    index: Path | Finder | None = None
    compare: bool = False

    def prepare(self) -> None:
        """Load the models, so that the first question does not wait for them."""
        self.engine.load()

    def rows(self, waiting: Iterator[tuple[int, Question | Row]]) -> Iterator[Row]:
        """The row of each question, as it is answered; a row that is there already is one."""
        return (self.row(number, item) if isinstance(item, Question) else item for number, item in waiting)

    def row(self, number: int, question: Question) -> Row:
        """The row of a question: its answer and scores, or its error."""
        row = base_row(number, question)
        answers: dict[str, Answer] = {}
        # in turns, so that what else the machine does hits both alike
        ways = [PLAIN, ""] if number % 2 else ["", PLAIN]
        for way in ways if self.compare else [""]:
            try:
                answers[way] = self._last(question, AnswerOptions(drafter=way or None))
            except Exception as error:  # recorded: one question must not stop thousands of others
                row["error"] = error_json(error)
                return row
        row |= _answered(question, answers[""])
        if self.compare:
            row["plain"] = _compared(answers[""], answers[PLAIN])
        return row

    def _last(self, question: Question, options: AnswerOptions) -> Answer:
        *_, answer = self._answers(question, options)
        return answer

    def _answers(self, question: Question, options: AnswerOptions) -> Iterator[Answer]:
        engine = self.engine
        if question.reading == Reading.PROMPT:
            passages = given(question.passages or [("prompt", question.text)]).passages
            return engine.complete([{"role": "user", "content": question.text}], passages, options)
        if question.reading == Reading.GIVEN:
            return engine.ask(question.text, given(question.passages), options=options)
        if question.reading == Reading.SEARCHED:
            return engine.ask(question.text, Evidence(question.passages, engine.profile.chunk_chars), options=options)
        if self.index is None:
            raise DocumentError("the question brings no passages, and no index was chosen with --index NAME")
        return engine.ask(question.text, self.index, options=options)


def base_row(number: int, question: Question | None) -> Row:
    """A row without an answer; the question is None if it could not be read."""
    asked = question or Question("", "")
    scored = ["exact_match", "f1", "contains"] if asked.expected or asked.unanswerable else []
    scored += ["rouge_l"] if asked.expected and not asked.unanswerable else []
    scored += ["citation_precision", "citation_recall"] if asked.citations else []
    return {
        "row": number,
        "id": asked.id or None,
        "digest": question.digest if question else None,
        "question": asked.text or None,
        "expected": list(asked.expected),
        "unanswerable": asked.unanswerable,
        "scored": scored,
        "scores": {},
        "error": None,
    }


def error_json(error: Exception) -> dict[str, str]:
    """An error as a row holds it."""
    return {"type": type(error).__name__, "message": str(error)}


def _answered(question: Question, answer: Answer) -> Row:
    shown = answer.to_json()
    del shown["question"]
    scores = score(answer.text, question.expected, question.unanswerable)
    if question.citations:
        cited = citations(answer.text, answer.spans)
        shown["citations"] = [{"sentence": sentence, "passage": passage} for sentence, passage in cited]
        scores |= citation_scores(cited, question.citations)
    return {**shown, "scores": {name: round(value, 6) for name, value in scores.items()}}


def _compared(drafted: Answer, plain: Answer) -> Row:
    identical = (drafted.text, drafted.finished) == (plain.text, plain.finished)
    return {"answer": plain.text, "stats": plain.stats.to_json(), "finished": plain.finished, "identical": identical}


def settings_of(engine: Engine) -> dict[str, Any]:
    """What an engine's answers and figures depend on, as a run's settings record it."""
    from app.answering.verify_costs import files_digest

    chosen = engine.settings.model_dump(mode="json")
    recorded = {name: chosen[name] for name in RECORDED} | dataclasses.asdict(engine.profile)
    del recorded["name"], recorded["note"]
    if is_remote(engine):
        return recorded
    here = {"device": engine.device, "dtype": engine.dtype_name, "max_nodes": engine.max_nodes}
    return {**recorded, **here, "model_files": files_digest(engine.model_folder)}


def is_remote(engine: Engine) -> bool:
    """Whether another server writes the answers; then nothing is drafted here."""
    return engine.settings.engine != "local"
