"""Fits and measures the judgement of relevance: which questions would be refused, by what the documents hold.

Articles of a SQuAD file and the written questions over the built-in corpus are split in two: the numbers are fitted on
one half, and everything reported is of the other. A question's own passage, where it holds the answer, is to be found
relevant; the best passages of an index without its article are not, nor are those of the built-in corpus for it.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from app.answering.engine import Engine
from app.documents.indexing import build_python_docs
from app.setup.profiles import LATE_INTERACTION
from benchmarks.conditions import conditions
from benchmarks.data import Article, read_articles
from benchmarks.follow_ups_run import STANDING_ALONE, read_dialogues
from indexes.errors import SettingError
from indexes.passages import Document, Passage
from indexes.store import PassageIndex, open_index, write_index
from retrieval.conversation import Turn
from retrieval.follow_ups import in_context
from retrieval.indexing import Progress, build_index
from retrieval.python_docs import PYTHON_DOCS
from retrieval.relevance import FITTED, Figures, Fit, RelevanceJudge, unjudgeable
from retrieval.retriever import Retriever

OFF_TOPIC = Path(__file__).with_name("off_topic.txt")
CURVE = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
PENALTY = 1e-3
READ = 3  # passages that are judged, as many as the laptop profile's prompt holds

HALVES = ("fit", "report")

Right = Callable[[Passage], bool]


@dataclass(frozen=True, slots=True)
class Case:
    """A question that was asked: the figures (P, 3) of its passages for each text that is judged, and which passages
    are right, if any is. Figures are None for a question that is never judged."""

    half: str
    name: str
    answered: bool
    figures: tuple[Figures, ...] | None
    right: tuple[bool, ...]

    def chance(self, fit: Fit) -> float:
        """The highest probability among its passages; 1 if it is never judged."""
        if self.figures is None:
            return 1.0
        return float(max(fit.chances(figures).max(initial=0.0) for figures in self.figures))


class Asker:
    """Asks questions of one index and notes the figures."""

    def __init__(self, engine: Engine, index: PassageIndex) -> None:
        self._retriever: Retriever = engine.retriever(index)
        self._judge = RelevanceJudge(engine.encoder, index)

    def ask(self, half: str, name: str, question: str, turns: Sequence[Turn] = (), right: Right | None = None) -> Case:
        """A case; `right` says which passages answer the question, None that none does."""
        asked = in_context(question, turns)
        passages = [found.passage for found in self._retriever.rank(asked).reranked[:READ]]
        texts = tuple(dict.fromkeys((asked.question, asked.whole)))
        judged = not any(unjudgeable(text) for text in texts)
        figures = tuple(self._judge.figures(text, passages) for text in texts) if judged else None
        return Case(half, name, right is not None, figures, tuple(bool(right and right(item)) for item in passages))


def run(engine: Engine, data: Path, count: int, fit: bool, least: float | None, progress: Progress) -> dict[str, Any]:
    """Ask everything; fit if wanted; refusals of the reported half."""
    if engine.profile.reranker != LATE_INTERACTION or engine.profile.encoder != FITTED.encoder:
        raise SettingError(f"relevance is judged with {FITTED.encoder} and {LATE_INTERACTION} only: use those")
    cases = [*squad_cases(engine, data, count, progress), *_python_docs(engine, data, count, progress)]
    numbers = fitted([case for case in cases if case.half == "fit"]) if fit else FITTED
    reported = [case for case in cases if case.half == "report"]
    threshold = engine.settings.min_relevance if least is None else least
    chosen = conditions(
        data=data.name, questions_per_article=count, min_relevance=threshold, half="report", device=engine.device,
        encoder=engine.profile.encoder, chunk_chars=engine.profile.chunk_chars, judged_passages=READ,
    )  # fmt: skip
    names = dict.fromkeys(case.name for case in reported)
    lines = [_line(name, [case for case in reported if case.name == name], numbers, threshold) for name in names]
    curve = [{"min_relevance": least, **_rates(reported, numbers, least)} for least in CURVE]
    own = {"fit": {half: _rates([c for c in cases if c.half == half], numbers, threshold) for half in HALVES}}
    return {"conditions": chosen | own, "cases": lines, "curve": curve, "fit": str(numbers)}


def squad_cases(engine: Engine, data: Path, count: int, progress: Progress) -> Iterator[Case]:
    """Questions of each article, asked of an index of its half's articles, and of one without it."""
    for half, articles in _halves(read_articles(data)).items():
        with tempfile.TemporaryDirectory() as scratch:
            settings, folder = engine.index_settings(), Path(scratch) / "all"
            documents = [
                Document(f"{article.title}/{row}", article.title, text, "")
                for article in articles
                for row, text in enumerate(article.paragraphs)
            ]
            build_index(folder, settings, documents, engine.encoder, progress)
            index = open_index(folder)
            encoded = index.encoded_documents().values()
            for done, article in enumerate(articles):
                progress(f"Articles to {half}", done, len(articles))
                rest = Path(scratch) / str(done)
                write_index(rest, settings, [item for item in encoded if item.document.title != article.title])
                without = open_index(rest)
                present, absent = Asker(engine, index), Asker(engine, without)
                for text, right in _asked(article, count):
                    yield present.ask(half, "SQuAD, article indexed", text, (), right)
                    yield absent.ask(half, "SQuAD, article not indexed", text)
                without.passages.close()
            progress(f"Articles to {half}", len(articles), len(articles))
            index.passages.close()


def _python_docs(engine: Engine, data: Path, count: int, progress: Progress) -> Iterator[Case]:
    build_python_docs(engine, progress)
    index = engine.open(engine.paths.indexes / PYTHON_DOCS)
    asker = Asker(engine, index)
    for half, dialogues_of in (("fit", "choose"), ("report", "report")):
        for dialogue in read_dialogues(index.passages, dialogues_of)[0]:
            right = _holding(dialogue.wanted)
            yield asker.ask(half, "Python, whole questions", dialogue.condensed, (), right)
            if half == "report":
                kind = "standing alone" if dialogue.kind in STANDING_ALONE else "follow-ups"
                yield asker.ask(half, f"Python, {kind} in a conversation", dialogue.question, dialogue.turns, right)
    for half, articles in _halves(read_articles(data)).items():
        for article in articles:
            for text, _ in _asked(article, count // 2):
                yield asker.ask(half, "SQuAD questions to Python", text)
    dialogue = read_dialogues(index.passages, "report")[0][0]
    for text in OFF_TOPIC.read_text("utf-8").splitlines():
        yield asker.ask("report", "off topic, to Python", text)
        yield asker.ask("report", "off topic, in a conversation on Python", text, dialogue.turns)


def _halves(articles: list[Article]) -> dict[str, list[Article]]:
    return {"fit": articles[::2], "report": articles[1::2]}


def _asked(article: Article, count: int) -> Iterator[tuple[str, Right]]:
    chosen = random.Random(0).sample(article.questions, min(count, len(article.questions)))
    for question, answers in chosen:
        yield question.text, _answering(f"{article.title}/{question.paragraph}", answers)


def _answering(source: str, answers: Sequence[str]) -> Right:
    return lambda passage: passage.source == source and any(answer in passage.text for answer in answers)


def _holding(rows: frozenset[int]) -> Right:
    return lambda passage: passage.row in rows


def fitted(cases: Sequence[Case]) -> Fit:
    """Logistic regression on right passages (1) and all passages of questions that nothing answers (0, a question
    counting as one), by its own quasi-Newton method on standardised figures."""
    rows, wanted, weights = [], [], []
    for case in cases:
        figures = case.figures[0] if case.figures is not None else np.zeros((0, 3))
        chosen = [row for row in range(len(figures)) if case.right[row] or not case.answered]
        rows.append(figures[chosen])
        wanted += [float(case.answered)] * len(chosen)
        weights += [1.0 if case.answered else 1 / max(len(chosen), 1)] * len(chosen)
    figures = np.concatenate(rows)
    mean, deviation = figures.mean(axis=0), figures.std(axis=0)
    inputs, target, weight = (torch.tensor(array) for array in ((figures - mean) / deviation, wanted, weights))
    slopes = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([slopes], max_iter=200)

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        errors = torch.nn.functional.binary_cross_entropy_with_logits(
            inputs @ slopes[:3] + slopes[3], target.double(), weight.double(), reduction="sum"
        )
        value: torch.Tensor = errors / weight.sum() + PENALTY * (slopes[:3] ** 2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    found = slopes.detach().numpy()
    dense, late, coverage = (found[:3] / deviation).round(2).tolist()
    return Fit(FITTED.encoder, round(float(found[3] - (found[:3] * mean / deviation).sum()), 2), dense, late, coverage)


def _line(name: str, cases: Sequence[Case], fit: Fit, least: float) -> dict[str, Any]:
    refused = sum(case.chance(fit) < least for case in cases)
    says = "yes" if cases[0].answered else "no"
    return {"questions": name, "count": len(cases), "answered there": says, "refused": round(refused / len(cases), 3)}


def _rates(cases: Sequence[Case], fit: Fit, least: float) -> dict[str, float]:
    rates: dict[str, float] = {}
    for column, answered in (("refused of answered", True), ("refused of others", False)):
        of_these = [case.chance(fit) < least for case in cases if case.answered is answered]
        rates[column] = round(sum(of_these) / max(len(of_these), 1), 3)
    return rates
