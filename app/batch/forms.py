"""The forms that rows of data sets come in, and one question out of each. Pure functions of rows, no files.

| form | told by | asks | reads |
|---|---|---|---|
| TriviaQA, hub | `question`, `answer.normalized_aliases` | `question` | the best pieces of its evidence pages, if any |
| TriviaQA, official | `Question`, `Answer` | `Question` | the same |
| HAGRID | `query`, `quotes` | `query` | its quotes |
| LLMA | `query`, `docs`, `result` | `query` | its docs; a query that holds them is a whole prompt |
| Spec-Bench | `turns` | the first turn | it is a whole prompt |
| SQuAD | `context`, `question`, `answers` | `question` | its paragraph |
| any other | a question column | it | its passages column, if it has one |

Evidence pages are too long to be read whole.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.batch.citations import cited_numbers, without_marks
from app.batch.questions import Question, Reading
from indexes.errors import DocumentError, SettingError

Row = Mapping[str, Any]

# Columns of tables, the first that is there; letter case does not matter.
QUESTION = ("question", "query", "prompt", "input")
EXPECTED = ("answers", "aliases", "answer", "expected", "gold", "reference", "target", "output")
PASSAGES = ("passages", "contexts", "context", "documents", "docs", "quotes")
ID = ("id", "question_id", "query_id", "qid")
UNANSWERABLE = ("is_impossible", "unanswerable")
LONG_CHARS = 8000  # a passage longer than this is searched, not read whole: it would leave room for nothing else


@dataclass(frozen=True, slots=True)
class Form:
    """A form of rows: its name, how a row of it is told, and how it is read."""

    name: str
    fits: Callable[[Row], bool]
    read: Callable[[Row, str], Question]  # the row, and an id for a row that has none


def form_of(row: Row, name: str) -> Form:
    """The form of a data set, by one row of it. Raises SettingError if there is nothing to ask in it."""
    for form in FORMS:
        if form.fits(row):
            return form
    columns = ", ".join(map(str, row)) or "none"
    raise SettingError(
        f"{name} has no question column; its columns are: {columns}. Name the one to ask 'question' "
        "(and what is expected 'answers', what may be read 'passages')"
    )


def read_row(form: Form, row: Row, default_id: str) -> Question:
    """The question in a row. Raises DocumentError saying what is wrong with the row."""
    try:
        question = form.read(row, default_id)
    except (KeyError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise DocumentError(f"the row is no {form.name} row: {type(error).__name__}: {error}") from error
    if not question.text.strip():
        raise DocumentError("the question is empty")
    return question


def _triviaqa_hub(row: Row, default_id: str) -> Question:
    pages, found = row.get("entity_pages") or {}, row.get("search_results") or {}
    passages = [
        *zip(pages.get("filename", ()), pages.get("wiki_context", ()), strict=False),
        *zip(found.get("filename", ()), found.get("search_context", ()), strict=False),
    ]
    aliases = row["answer"]["normalized_aliases"] or row["answer"].get("aliases", ())
    return _with_pages(str(row.get("question_id", default_id)), row["question"], aliases, passages)


def _triviaqa_official(row: Row, default_id: str) -> Question:
    answer = row.get("Answer") or {}
    aliases = [*answer.get("NormalizedAliases", ()), *answer.get("HumanAnswers", ())]
    return _with_pages(str(row.get("QuestionId", default_id)), row["Question"], aliases, row.get("pages", ()))


def _with_pages(question_id: str, text: str, aliases: Iterable[str], pages: Iterable[tuple[str, str]]) -> Question:
    kept = tuple((str(name), str(page)) for name, page in pages if page and page.strip())
    reading = Reading.SEARCHED if kept else Reading.INDEX
    return Question(question_id, str(text), tuple(dict.fromkeys(filter(None, aliases))), kept, reading)


def _hagrid(row: Row, default_id: str) -> Question:
    quotes = tuple((str(quote["idx"]), str(quote["text"])) for quote in row["quotes"])
    ids = {quote_id for quote_id, _ in quotes}
    answers = row.get("answers") or []
    good = [answer for answer in answers if answer.get("informative") != 0] or answers
    cited = []
    for answer in answers:
        sentences = [item for item in answer.get("sentences") or [] if _attributable(item, answer)]
        numbers = dict.fromkeys(number for item in sentences for number in cited_numbers(item["text"]))
        cited.append(tuple(number for number in numbers if number in ids))
    return Question(
        str(row.get("query_id", default_id)),
        str(row["query"]),
        tuple(dict.fromkeys(without_marks(str(answer["answer"])) for answer in good)),
        quotes,
        Reading.GIVEN,
        citations=tuple(dict.fromkeys(filter(None, cited))),
    )


def _attributable(sentence: Row, answer: Row) -> bool:
    judged = sentence.get("attributable")
    return bool(answer.get("attributable") if judged is None else judged)


def _llma(row: Row, default_id: str) -> Question:
    docs = tuple((str(number), str(text)) for number, text in enumerate(row["docs"], start=1))
    recorded = re.sub(r"^\d+####", "", str(row["result"]["text"])).strip()  # some recorded answers begin with a number
    whole = any(text in row["query"] for _, text in docs)
    reading = Reading.PROMPT if whole else Reading.GIVEN
    return Question(default_id, str(row["query"]), (recorded,) if recorded else (), docs, reading)


def _spec_bench(row: Row, default_id: str) -> Question:
    references = [text for item in row.get("reference") or () for text in _references(str(item))]
    return Question(
        str(row.get("question_id", default_id)), str(row["turns"][0]), tuple(references), reading=Reading.PROMPT
    )


def _references(text: str) -> list[str]:
    """A reference of Spec-Bench; those of its RAG rows are short answers, as a Python list written into the text."""
    if text.startswith("["):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return [str(item) for item in ast.literal_eval(text) if item]
    return [text] if text else []


def _squad(row: Row, default_id: str) -> Question:
    texts = row["answers"]["text"] if isinstance(row["answers"], Mapping) else [item["text"] for item in row["answers"]]
    paragraph = (str(row.get("title") or "paragraph"), str(row["context"]))
    return Question(
        str(row.get("id", default_id)), str(row["question"]), tuple(dict.fromkeys(texts)), (paragraph,), Reading.GIVEN,
        unanswerable=not texts,
    )  # fmt: skip


def _is_squad(row: Row) -> bool:
    answers = row.get("answers")
    whole = isinstance(answers, Mapping) and "text" in answers
    listed = isinstance(answers, list) and all(isinstance(item, Mapping) and "text" in item for item in answers)
    return "context" in row and "question" in row and (whole or (listed and (bool(answers) or "is_impossible" in row)))


def _table(row: Row, default_id: str) -> Question:
    text, expected = _first(row, QUESTION), _first(row, EXPECTED)
    passages = tuple(_passages(_first(row, PASSAGES)))
    reading = Reading.GIVEN if passages else Reading.INDEX
    if any(len(passage) > LONG_CHARS for _, passage in passages):
        reading = Reading.SEARCHED
    named = _first(row, ID)
    return Question(
        default_id if named in (None, "") else str(named),
        "" if text is None else str(text),
        tuple(dict.fromkeys(str(item) for item in _listed(expected) if item not in (None, ""))),
        passages,
        reading,
        unanswerable=str(_first(row, UNANSWERABLE)).lower() in ("true", "1"),
    )


def _first(row: Row, names: Sequence[str]) -> Any:
    """The value of the first of these columns that the row has; None if it has none of them."""
    columns = {str(column).strip().lower(): value for column, value in row.items()}
    return next((columns[name] for name in names if name in columns), None)


def _listed(value: Any) -> list[Any]:
    """A cell as a list: it may be one, or, in a table of texts, a JSON list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _passages(value: Any) -> Iterable[tuple[str, str]]:
    """(id, text) pairs; passages may be texts, or objects with a text."""
    for number, item in enumerate(_listed(value), start=1):
        named = isinstance(item, Mapping)
        text = str(item["text"] if named else item)
        if text.strip():
            yield str(item.get("id", number) if named else number), text


FORMS = (
    Form("TriviaQA", lambda row: isinstance(row.get("answer"), Mapping) and "normalized_aliases" in row["answer"],
         _triviaqa_hub),
    Form("TriviaQA", lambda row: "Question" in row and "Answer" in row, _triviaqa_official),
    Form("HAGRID", lambda row: "query" in row and isinstance(row.get("quotes"), list), _hagrid),
    Form("LLMA", lambda row: "query" in row and isinstance(row.get("docs"), list) and "result" in row, _llma),
    Form("Spec-Bench", lambda row: isinstance(row.get("turns"), list), _spec_bench),
    Form("SQuAD", _is_squad, _squad),
    Form("question", lambda row: any(str(column).strip().lower() in QUESTION for column in row), _table),
)  # fmt: skip
