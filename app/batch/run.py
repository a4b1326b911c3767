"""A run over a data set: begins or resumes it, answers what is not answered yet, and sums up.

A row is on the file when its question is done with; whatever kills the run, the next one goes on after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.batch.answering import Answerer, base_row, error_json, settings_of
from app.batch.datasets import Dataset
from app.batch.questions import Question, Reading
from app.batch.report import Examples, report
from app.batch.rows import Row, RowWriter, read_rows
from app.batch.run_folder import REPORT, ROWS, SUMMARY, open_run
from app.batch.summary import Summary
from indexes.errors import DocumentError, QuotewrightError, SettingError
from indexes.files import current_generation, write_whole
from retrieval.python_docs import PYTHON_DOCS

Progress = Callable[[Summary], None]

OWN_FAULTS = ("DocumentError", "PromptTooLongError")  # a question's; any other error may be of the machine or a server
MOST_FAILURES = 20  # in a row, not by a question's own fault: then the rest is not tried


class Run:
    """A data set, an engine and a folder. `say` tells people of what was found there."""

    def __init__(self, data: Dataset, answerer: Answerer, folder: Path, say: Callable[[str], None]) -> None:
        self._data = data
        self._answerer = answerer
        self._folder = folder
        self._say = say
        self.summary = Summary()
        self._examples = Examples()

    def settings(self, limit: int | None) -> dict[str, Any]:
        """What this run is, to compare with when it is resumed."""
        index = self._answerer.index if isinstance(self._answerer.index, Path) else None
        return {
            "dataset": self._data.name,
            "split": self._data.split,
            "dataset_sha256": self._data.digest,
            "rows": len(self._data.rows),
            "limit": limit,
            "index": index and index.name,
            "index_digest": index and current_generation(index)[1],
            "compare": "plain" if self._answerer.compare else None,
            **settings_of(self._answerer.engine),
        }

    def go(self, limit: int | None, retry_failed: bool, progress: Progress) -> dict[str, Any]:
        """Answer all that is not answered; returns what summary.json holds. Raises SettingError."""
        settings = self.settings(limit)
        with open_run(self._folder, settings, retry_failed) as dropped:
            done = self._read_done()
            if dropped:
                self._say(f"{dropped} row(s) of {self._folder / ROWS} are dropped and answered again")
            if done:
                self._say(f"Resuming: {len(done)} of {len(self._data.rows)} questions are answered already")
            if len(done) < len(self._data.rows):
                self._answerer.prepare()  # before the clock of the progress starts
            progress(self.summary)
            self._answer(done, progress)
            summary = {"run": settings, **self.summary.to_json()}
            write_whole(self._folder / SUMMARY, json.dumps(summary, indent=1).encode("ascii"))
            write_whole(self._folder / REPORT, report(summary, self._examples).encode("utf-8", "backslashreplace"))
        return summary

    def _read_done(self) -> dict[int, str | None]:
        """The numbers of the rows that are answered, and the digests of their questions."""
        done: dict[int, str | None] = {}
        for row in read_rows(self._folder / ROWS):
            done[row["row"]] = row.get("digest")
            try:
                self._count(row)
            except (KeyError, TypeError, AttributeError) as error:  # whole as a line, but nothing that a run writes
                raise SettingError(
                    f"row {row['row']} in {self._folder / ROWS} is no row of a run ({type(error).__name__}: {error}); "
                    "remove its line to have it answered again"
                ) from error
        return done

    def _count(self, row: Row) -> None:
        self.summary.add(row)
        self._examples.add(row)

    def _answer(self, done: dict[int, str | None], progress: Progress) -> None:
        failures = 0
        with RowWriter(self._folder / ROWS) as rows:
            for row in self._answerer.rows(self._waiting(done)):
                rows.append(row)
                self._count(row)
                progress(self.summary)
                failures = failures + 1 if row["error"] and row["error"]["type"] not in OWN_FAULTS else 0
                if failures == MOST_FAILURES:
                    raise QuotewrightError(
                        f"{failures} questions in a row failed, the last with: {row['error']['message']}. "
                        "Put that right, and go on with the same command and --retry-failed"
                    )

    def _waiting(self, done: dict[int, str | None]) -> Iterator[tuple[int, Question | Row]]:
        """What is not done. Raises SettingError for a question that is another one than when it was answered."""
        for number, question in self._questions():
            if number in done:
                self._check_same(number, question, done[number])
            else:
                yield number, question

    def _questions(self) -> Iterator[tuple[int, Question | Row]]:
        """Every row's question; for one that cannot be read, the row that records it."""
        for number in range(len(self._data.rows)):
            try:
                yield number, self._data.question(number)
            except DocumentError as error:
                yield number, base_row(number, None) | {"error": error_json(error)}

    def _check_same(self, number: int, question: Question | Row, digest: str | None) -> None:
        now = question.digest if isinstance(question, Question) else None
        if now != digest:
            raise SettingError(
                f"row {number + 1} of {self._data.name} is another question now than when the run in {self._folder} "
                "answered it; give a new --out"
            )


def index_for(data: Dataset, chosen: str | None) -> str | None:
    """The name of the index that a run searches: the chosen one, or for the built-in questions the built-in corpus.

    Raises SettingError if there must be one: the first question brings no passages and nobody chose where to look.
    """
    if chosen is None and data.name == PYTHON_DOCS:
        return PYTHON_DOCS
    if chosen is None:
        for number in range(len(data.rows)):
            try:
                first = data.question(number)
            except DocumentError:
                continue
            if first.reading == Reading.INDEX:
                raise SettingError(
                    f"the questions of {data.name} bring no passages; choose the index that answers them: --index NAME"
                )
            break
    return chosen
