"""Data sets by name: the built-in questions, and the hub's sets from folders in the hub's own layout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.batch import datasets
from app.batch.datasets import load
from app.batch.questions import Question, Reading
from app.batch.scores import normalise
from indexes.errors import SettingError
from retrieval.python_docs import python_docs
from tests.app.batch.test_forms import HAGRID

ROOT = Path(__file__).parents[3]


def test_every_built_in_question_has_an_answer_that_stands_in_the_corpus_or_none_at_all() -> None:
    corpus = " ".join(f" {normalise(document.text)} " for document in python_docs())
    data = load("python-docs")
    questions = [data.question(number) for number in range(len(data.rows))]
    assert len(questions) == 20
    missing = [
        item.id for item in questions
        if not item.unanswerable and not any(f" {normalise(text)} " in corpus for text in item.expected)
    ]  # fmt: skip
    assert missing == []
    assert [item.id for item in questions if item.unanswerable] == ["unanswerable"]


def test_a_limit_takes_the_first_rows() -> None:
    assert len(load("python-docs", limit=3).rows) == 3


# TriviaQA: the set's id is replaced by a folder in the layout of its repository; `datasets` itself is real.

CARD = """---
configs:
- config_name: rc.wikipedia
  data_files:
  - {split: validation, path: rc.wikipedia/validation-*}
- config_name: unfiltered.nocontext
  data_files:
  - {split: train, path: unfiltered.nocontext/train-*}
  - {split: validation, path: unfiltered.nocontext/validation-*}
---
"""


def triviaqa_row(number: int, page: str | None) -> dict[str, Any]:
    return {
        "question": f"Question {number}?",
        "question_id": f"tc_{number}",
        "question_source": "http://example.org",
        "entity_pages": {
            "doc_source": ["TagMe"] if page else [], "filename": ["Page.txt"] if page else [],
            "title": ["Page"] if page else [], "wiki_context": [page] if page else [],
        },
        "search_results": {"description": [""][:0], "filename": [""][:0], "search_context": [""][:0]},
        "answer": {"aliases": ["A 1"], "normalized_aliases": ["1"], "value": "A 1", "type": "WikipediaEntity"},
    }  # fmt: skip


@pytest.fixture
def triviaqa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import Table, parquet

    folder = tmp_path / "trivia_qa"
    for configuration, split, rows in (
        ("rc.wikipedia", "validation", [triviaqa_row(1, "The page."), triviaqa_row(2, "Another.")]),
        ("unfiltered.nocontext", "train", [triviaqa_row(3, None)]),
        ("unfiltered.nocontext", "validation", [triviaqa_row(4, None), triviaqa_row(5, None), triviaqa_row(6, None)]),
    ):
        (folder / configuration).mkdir(parents=True, exist_ok=True)
        parquet.write_table(Table.from_pylist(rows), folder / configuration / f"{split}-00000-of-00001.parquet")
    (folder / "README.md").write_text(CARD)
    monkeypatch.setattr(datasets, "TRIVIAQA", str(folder))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.usefixtures("triviaqa")
@pytest.mark.parametrize("limit", [None, 1])  # whole, and streamed
def test_triviaqa_brings_its_wikipedia_pages(limit: int | None) -> None:
    data = load("triviaqa", limit=limit)
    assert (data.name, data.split, len(data.rows)) == ("triviaqa:rc.wikipedia", "validation", limit or 2)
    assert data.question(0) == Question(
        "tc_1", "Question 1?", ("1",), (("Page.txt", "The page."),), Reading.SEARCHED
    )  # fmt: skip


@pytest.mark.usefixtures("triviaqa")
@pytest.mark.parametrize(("split", "ids"), [(None, ["tc_4", "tc_5", "tc_6"]), ("train", ["tc_3"])])
def test_triviaqa_without_context_has_splits(split: str | None, ids: list[str]) -> None:
    data = load("triviaqa:unfiltered.nocontext", split)
    assert [data.question(number).id for number in range(len(data.rows))] == ids
    assert data.question(0).reading == Reading.INDEX


# HAGRID: a hub cache as the hub's client leaves it, read by the real client in a process of its own.


@pytest.fixture
def hagrid(tmp_path: Path) -> dict[str, str]:
    repository = tmp_path / "hub" / "datasets--miracl--hagrid"
    commit = "0" * 40
    file = repository / "snapshots" / commit / "hagrid-v1.0-en" / "dev.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join([json.dumps(HAGRID), "torn"]))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "PATH": ""}


def load_apart(environment: dict[str, str], call: str) -> subprocess.CompletedProcess[str]:
    program = f"from app.batch.datasets import load\nd = {call}\nprint(d.form.name, len(d.rows), d.question(0).text)"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_hagrid_is_read_from_the_hub_s_cache_without_a_network(hagrid: dict[str, str]) -> None:
    done = load_apart(hagrid, "load('hagrid')")
    assert done.stdout == "HAGRID 2 Who sat?\n", done.stderr


@pytest.mark.parametrize("call", ["load('hagrid', 'train')", "load('triviaqa', limit=5)", "load('triviaqa')"])
def test_a_hub_set_that_cannot_be_had_says_what_to_do(hagrid: dict[str, str], call: str) -> None:
    done = load_apart(hagrid, call)
    last = done.stderr.splitlines()[-1]
    assert "could not be had: HF_HUB_OFFLINE is set and it is not in the hub's cache. Connect to the hub once" in last
    assert "--dataset FILE" in last


@pytest.mark.parametrize(
    ("name", "split", "reason"),
    [
        ("nothere", None, "there is no data set or file 'nothere'; give one of python-docs, triviaqa,"),
        ("hagrid", "test", "hagrid has no split 'test'; choose train or dev"),
        ("triviaqa", "dev", "triviaqa has no split 'dev'; choose train, validation or test"),
        ("python-docs", "dev", "python-docs has no splits; leave --split dev out"),
    ],
)
def test_an_unknown_name_or_split_is_refused_with_the_known_ones(name: str, split: str | None, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        load(name, split)
