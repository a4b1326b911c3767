"""A data set by its name or file: how many rows it has, and the question in each.

Hub sets: TriviaQA's parquet files through `datasets`, streamed if only some rows are wanted; HAGRID's JSON lines are
fetched as they are, because its loading script is one that `datasets` no longer runs. What was fetched once is found
again without a network. Knows nothing of answers.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.batch.files import KINDS, RawRow, read_rows
from app.batch.forms import Form, form_of, read_row
from app.batch.questions import Question
from indexes.errors import DocumentError, SettingError
from indexes.files import sha256_file
from retrieval.python_docs import PYTHON_DOCS

TRIVIAQA, HAGRID = "mandarjoshi/trivia_qa", "miracl/hagrid"
CONFIGURATIONS = ("rc.wikipedia", "unfiltered.nocontext")
PYTHON_QUESTIONS = Path(__file__).with_name("python_questions.jsonl")
HUB_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows that are read one at a time. digest is of the file's bytes; None for a hub set."""

    name: str
    split: str | None
    form: Form
    rows: Sequence[RawRow]
    digest: str | None = None

    def question(self, number: int) -> Question:
        """The question in a row, counted from 0. Raises DocumentError saying what is wrong with the row."""
        row = self.rows[number]
        if isinstance(row, DocumentError):
            raise row
        return read_row(self.form, row, str(number + 1))


def load(name: str, split: str | None = None, limit: int | None = None) -> Dataset:
    """The data set of that name, or in that file; its first `limit` rows only.

    Raises SettingError for an unknown name, split or form, and for a hub set that cannot be had, saying what to do.
    """
    known: dict[str, Callable[[], Dataset]] = {
        PYTHON_DOCS: partial(_from_file, PYTHON_DOCS, PYTHON_QUESTIONS, split, limit),
        "triviaqa": partial(_triviaqa, CONFIGURATIONS[0], split, limit),
        **{
            f"triviaqa:{configuration}": partial(_triviaqa, configuration, split, limit)
            for configuration in CONFIGURATIONS
        },
        "hagrid": partial(_hagrid, split, limit),
    }
    path = Path(os.path.expanduser(name))
    if name in known:
        return known[name]()
    if path.is_file():
        return _from_file(path.name, path, split, limit)
    raise SettingError(
        f"there is no data set or file {name!r}; give one of {', '.join(known)}, or a file that ends with "
        f"{' '.join(KINDS)}"
    )


def _from_file(name: str, path: Path, split: str | None, limit: int | None) -> Dataset:
    if split is not None:
        raise SettingError(f"{name} has no splits; leave --split {split} out")
    return _dataset(name, None, read_rows(path)[:limit], sha256_file(path))


def _dataset(name: str, split: str | None, rows: Sequence[RawRow], digest: str | None = None) -> Dataset:
    first = next((row for row in rows if not isinstance(row, DocumentError)), None)
    if first is None:
        reason = f": {rows[0]}" if rows else ""
        raise SettingError(f"{name} holds no row that can be read{reason}")
    return Dataset(name, split, form_of(first, name), rows, digest)


def _hagrid(split: str | None, limit: int | None) -> Dataset:
    split = split or "dev"
    if split not in ("train", "dev"):
        raise SettingError(f"hagrid has no split {split!r}; choose train or dev")

    def fetch(online: bool) -> Path:
        from huggingface_hub import hf_hub_download

        file = f"hagrid-v1.0-en/{split}.jsonl"
        return Path(hf_hub_download(HAGRID, file, repo_type="dataset", local_files_only=not online))

    path: Path = _from_hub(HAGRID, fetch, f"its {split}.jsonl")
    return _dataset("hagrid", split, read_rows(path)[:limit], sha256_file(path))


def _triviaqa(configuration: str, split: str | None, limit: int | None) -> Dataset:
    split = split or "validation"
    if split not in ("train", "validation", "test"):
        raise SettingError(f"triviaqa has no split {split!r}; choose train, validation or test")

    def fetch(online: bool) -> Any:
        import datasets

        datasets.disable_progress_bars()
        datasets.logging.set_verbosity_error()
        if not online:
            datasets.config.HF_HUB_OFFLINE = True  # it would try for half a minute before it looks into its cache
        if limit is None or not online:
            return datasets.load_dataset(TRIVIAQA, configuration, split=split)
        return list(
            itertools.islice(datasets.load_dataset(TRIVIAQA, configuration, split=split, streaming=True), limit)
        )

    rows = _from_hub(TRIVIAQA, fetch, "an official JSON file of TriviaQA, or a Parquet file of this set")
    return _dataset(f"triviaqa:{configuration}", split, rows)


def _from_hub(repository: str, fetch: Callable[[bool], Any], instead: str) -> Any:
    """What `fetch` gives; it is told whether the hub answers, and otherwise looks into the hub's cache."""
    problem = "" if os.path.isdir(repository) else _unreachable(repository)
    try:
        return fetch(not problem)
    except Exception as error:  # the hub's clients let their HTTP libraries' own errors through
        reason = problem or f"{type(error).__name__}: {(str(error).splitlines() or ['no reason given'])[0]}"
        raise SettingError(
            f"the data set {repository} could not be had: {reason}. Connect to the hub once (what was fetched is "
            f"kept), or give {instead}, with --dataset FILE"
        ) from error


def _unreachable(repository: str) -> str:
    """Why the hub does not answer; empty if it does."""
    from huggingface_hub import HfApi

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return "HF_HUB_OFFLINE is set and it is not in the hub's cache"
    try:
        HfApi().dataset_info(repository, timeout=HUB_TIMEOUT_S)
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or ['no answer'])[0]}, and it is not in the cache"
