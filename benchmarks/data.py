"""Reads the public data sets that benchmarks run on: Spec-Bench and LLMA prompts, SQuAD paragraphs."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.answering.prompt import fold
from indexes.errors import SettingError


@dataclass(frozen=True, slots=True)
class PromptExample:
    """One prompt, and the texts in it that a drafter may copy from."""

    id: str
    prompt: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the row of the paragraph that answers it."""

    text: str
    paragraph: int


@dataclass(frozen=True, slots=True)
class Article:
    """An article of a SQuAD file: its paragraphs, and its answerable questions with the texts that answer them."""

    title: str
    paragraphs: tuple[str, ...]
    questions: tuple[tuple[Question, tuple[str, ...]], ...]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file. Raises SettingError for anything else."""
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"{path} cannot be read as JSON lines: {error}") from error
    if not all(isinstance(line, dict) for line in lines):
        raise SettingError(f"{path} cannot be read as JSON lines: not every line is an object")
    return lines


def read_prompts(path: Path, data_format: str | None = None, limit: int | None = None) -> list[PromptExample]:
    """Prompts in Spec-Bench's form (`turns`) or LLMA's (`query`, `docs`), detected if not said.

    Spec-Bench has passages and question as lines of one text; each line is a reference.
    Raises SettingError for another form.
    """
    lines = read_lines(path)[:limit]
    if not lines:
        raise SettingError(f"{path} holds no examples")
    found = data_format or ("spec-bench" if "turns" in lines[0] else "llma" if "docs" in lines[0] else "unknown")
    forms = {"spec-bench": _spec_bench, "llma": _llma}
    if found in forms:
        try:
            return [forms[found](number, line) for number, line in enumerate(lines)]
        except (LookupError, TypeError, AttributeError) as error:
            raise SettingError(f"{path} holds examples in another form than {found}: {error!r}") from error
    raise SettingError(f"{path} has format {found!r}; known are spec-bench and llma")


def _spec_bench(number: int, line: dict[str, Any]) -> PromptExample:
    prompt = readable(line["turns"][0])
    references = tuple(part for part in prompt.splitlines() if part.strip())
    return PromptExample(str(line.get("question_id", number)), prompt, references)


def _llma(number: int, line: dict[str, Any]) -> PromptExample:
    docs, query = [fold(readable(doc)) for doc in line["docs"]], readable(line["query"])
    prompt = "\n\n".join([*docs, f"Question: {query}\nAnswer:"])
    return PromptExample(str(number), prompt, (*docs, query))


def readable(text: Any) -> str:
    """A text without halves of characters, which no tokenizer reads. Raises TypeError for anything else."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.40} is no text")
    return text.encode("utf-8", "replace").decode("utf-8")


def read_squad(path: Path) -> tuple[list[str], list[Question]]:
    """All paragraphs, and all answerable questions. Raises SettingError for another form."""
    try:
        articles = json.loads(path.read_text("utf-8"))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
        questions = [
            Question(item["question"].strip(), row)
            for row, paragraph in enumerate(paragraphs)
            for item in paragraph["qas"]
            if not item.get("is_impossible")
        ]
        return [paragraph["context"] for paragraph in paragraphs], questions
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{path} cannot be read as SQuAD JSON: {type(error).__name__}: {error}") from error


def read_articles(path: Path) -> list[Article]:
    """Articles; a question's paragraph is its place in the article. Raises SettingError for another form."""
    read_squad(path)
    articles: list[Article] = []
    for article in json.loads(path.read_text("utf-8"))["data"]:
        questions = [
            (Question(item["question"].strip(), row), tuple(answer["text"] for answer in item["answers"]))
            for row, paragraph in enumerate(article["paragraphs"])
            for item in paragraph["qas"]
            if not item.get("is_impossible")
        ]
        paragraphs = tuple(paragraph["context"] for paragraph in article["paragraphs"])
        articles.append(Article(str(article.get("title", len(articles))), paragraphs, tuple(questions)))
    return articles


def sample(questions: list[Question], count: int, seed: int, rest: bool = False) -> list[Question]:
    """`count` questions by seeded choice; with `rest`, as many of those that this choice leaves out."""
    shuffled = random.Random(seed).sample(questions, len(questions))
    return shuffled[count : 2 * count] if rest else shuffled[:count]
