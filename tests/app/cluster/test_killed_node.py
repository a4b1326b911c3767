"""An index and a batch run on three nodes, one of which is killed in the middle, against the same done here.

The models are the real ones: MiniLM encodes, SmolLM2 answers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.answering.engine import Engine
from app.batch.answering import Answerer
from app.batch.datasets import load
from app.batch.rows import read_rows
from app.batch.run import Run
from app.batch.summary import Summary
from app.cluster.answering import RayAnswerer
from app.cluster.indexing import RayWorkers
from app.cluster.session import RayChoice, ray_session
from app.documents.indexing import index_files
from app.setup.settings import Paths, Settings, paths
from indexes.generations import read_current
from indexes.passage_files import RECORDS
from indexes.segments import ARRAYS
from indexes.store import open_index
from tests.app.cluster.conftest import Nodes

QUESTIONS = 12


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Short chunks and short answers, and nothing to measure first."""
    settings = Settings(chunk_chars=100, drafter="trie", node_budget="fixed", max_new_tokens=8, device="cpu")
    return Engine(settings, home=Paths(tmp_path_factory.mktemp("data"), paths().cache))


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty documents of ten sentences, and one file that cannot be read."""
    folder = tmp_path_factory.mktemp("notes")
    for number in range(60):
        lines = [
            f"Lamp {number} of room {line} is lit by keeper {number * line % 7}, as its log says." for line in range(10)
        ]
        (folder / f"{number:02}.txt").write_text("\n\n".join(lines))
    (folder / "broken.pdf").write_bytes(b"no pdf")
    return folder


@pytest.fixture(scope="module")
def here(engine: Engine, notes: Path) -> Path:
    """The index as this process makes it."""
    folder = engine.paths.indexes / "here"
    index_files(engine, folder, [notes])
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The SHA-256 of all files of an index that hold no time."""
    (segment,) = read_current(folder).segments
    return {name: file.sha256 for name, file in segment.files.items() if name not in (RECORDS, ARRAYS)}


def killing(cluster: Nodes, when: Callable[..., bool]) -> Callable[..., None]:
    """A progress that kills a node once, when the time has come."""
    killed: list[bool] = []

    def progress(*state: Any) -> None:
        if not killed and when(*state):
            killed.append(True)
            cluster.kill()

    return progress


def test_an_index_built_while_a_node_is_killed_is_the_one_built_here(
    cluster: Nodes, engine: Engine, notes: Path, here: Path
) -> None:
    cluster.complete()
    folder, told = engine.paths.indexes / "spread", list[str]()
    progress = killing(cluster, lambda what, done, total: what.startswith("Encoding") and 0 < done < total)
    with ray_session(cluster.address, told.append):
        report = index_files(
            engine, folder, [notes], progress, workers=RayWorkers(engine, RayChoice(cluster.address), told.append)
        )
    assert any("Ray lost a worker" in line for line in told)  # otherwise nothing was tried
    assert (report.documents, report.encoded, list(report.skipped)) == (60, 60, [str(notes / "broken.pdf")])
    assert read_current(folder).number == 1  # one commit
    sources = open_index(folder).passages.sources()
    assert sources == open_index(here).passages.sources()
    assert len(set(sources)) == 60
    assert contents(folder) == contents(here)


def answers(folder: Path) -> list[tuple[int, str, str]]:
    """The rows as they stand in the file, one line each: number, answer, error."""
    lines = (folder / "rows.jsonl").read_text().splitlines()
    assert len(lines) == len(list(read_rows(folder / "rows.jsonl")))
    rows = sorted(map(json.loads, lines), key=lambda row: row["row"])
    return [(row["row"], row.get("answer", ""), row["error"]) for row in rows]


def test_a_batch_run_during_which_a_node_is_killed_has_the_answers_given_here(
    cluster: Nodes, engine: Engine, here: Path, tmp_path: Path
) -> None:
    cluster.complete()
    rows = [json.dumps({"question": f"Who lights lamp {number}?"}) for number in range(QUESTIONS)]
    (tmp_path / "q.jsonl").write_text("\n".join([*rows, "torn"]))
    data, told = load(str(tmp_path / "q.jsonl")), list[str]()
    Run(data, Answerer(engine, here), tmp_path / "alone", told.append).go(None, False, lambda _: None)

    def answered(summary: Summary) -> bool:
        return 3 < summary.questions < QUESTIONS

    with contextlib.ExitStack() as held:
        answerer = RayAnswerer(engine, here, False, RayChoice(cluster.address), held, told.append)
        Run(data, answerer, tmp_path / "spread", told.append).go(None, False, killing(cluster, answered))
    assert any("Ray lost a worker" in line for line in told)
    assert answers(tmp_path / "spread") == answers(tmp_path / "alone")
    assert [number for number, _, _ in answers(tmp_path / "spread")] == list(range(QUESTIONS + 1))
    assert len({answer for _, answer, _ in answers(tmp_path / "alone")}) > QUESTIONS / 2  # they do differ
    assert (tmp_path / "spread" / "run.json").read_bytes() == (tmp_path / "alone" / "run.json").read_bytes()
