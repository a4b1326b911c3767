"""Rows out of a file: JSON lines, JSON, CSV, TSV or Parquet; TriviaQA's and SQuAD's JSON are made rows of here.

A line that cannot be read stands as a DocumentError in its place, so that rows keep their numbers and a run can record
it. Knows nothing of what the columns mean.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.errors import DocumentError, SettingError

RawRow = Mapping[str, Any] | DocumentError
KINDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


def read_rows(path: Path) -> list[RawRow]:
    """Every row of a file, by the end of its name. Raises SettingError for a file that is no table of rows."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise SettingError(f"{path} is of no kind that holds questions; give one that ends with {' '.join(KINDS)}")
    if kind == ".parquet":
        return _parquet(path)
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} cannot be read as UTF-8 text: {error.reason} at byte {error.start}") from error
    if kind == ".json":
        return _json(path, text)
    return list(_table(text, "\t" if kind == ".tsv" else ",") if kind in (".csv", ".tsv") else _lines(text))


def _lines(text: str) -> Iterator[RawRow]:
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines() would also split at U+2028
        if line.strip():
            yield _object(line, f"line {number}")


def _object(text: str, where: str) -> RawRow:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return DocumentError(f"{where} is not JSON: {error}")
    return row if isinstance(row, dict) else DocumentError(f'{where} must be an object such as {{"question": ...}}')


def _table(text: str, delimiter: str) -> Iterator[RawRow]:
    csv.field_size_limit(2**31 - 1)  # a cell may hold a page
    try:
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
            extra = row.pop(None, None)  # cells beyond the last column
            yield DocumentError(f"the row has {len(extra)} cells too many") if extra else row
    except csv.Error as error:
        yield DocumentError(f"the rest of the table cannot be read: {error}")


def _parquet(path: Path) -> list[RawRow]:
    import pyarrow
    from pyarrow import parquet

    try:
        rows: list[RawRow] = parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise SettingError(f"{path} cannot be read as Parquet: {error}") from error
    return rows


def _json(path: Path, text: str) -> list[RawRow]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not JSON: {error}") from error
    try:
        if isinstance(data, dict) and isinstance(data.get("Data"), list):
            return list(_triviaqa(path, data))
        if isinstance(data, dict) and isinstance(data.get("data"), list):
            return list(_squad(data))
    except (KeyError, TypeError, AttributeError) as error:
        raise SettingError(f"{path} is neither TriviaQA's nor SQuAD's JSON: {type(error).__name__}: {error}") from error
    if isinstance(data, list):
        return [
            row if isinstance(row, dict) else DocumentError(f"item {number} must be an object")
            for number, row in enumerate(data, start=1)
        ]
    raise SettingError(f"{path} holds no rows: give a list of objects, TriviaQA's JSON (Data) or SQuAD's (data)")


def _squad(data: Mapping[str, Any]) -> Iterator[RawRow]:
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield {**question, "title": article.get("title"), "context": paragraph["context"]}


def _triviaqa(path: Path, data: Mapping[str, Any]) -> Iterator[RawRow]:
    """The questions; of a verified set only the verified ones, as the official scorer reads it."""
    for row in data["Data"]:
        if not data.get("VerifiedEval") or row.get("QuestionPartOfVerifiedEval"):
            yield {**row, "pages": EvidencePages(path.resolve().parent.parent / "evidence", row)}


@dataclass(frozen=True, slots=True)
class EvidencePages:
    """A question's evidence pages as (name, text) pairs, read when they are asked for: all together fill a memory.

    `folder` is the one that the official archive holds beside its folder of questions; without it there are no pages.
    """

    folder: Path
    row: Mapping[str, Any]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for folder, key in (("wikipedia", "EntityPages"), ("web", "SearchResults")):
            root = self.folder / folder
            for page in self.row.get(key) or ():
                file = (root / str(page.get("Filename", ""))).resolve()
                if file.is_relative_to(root) and file.is_file():
                    yield file.name, file.read_text("utf-8", errors="replace")
