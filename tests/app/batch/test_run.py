"""Whole runs with a tiny model: complete, killed and resumed, interrupted, refused.

What is killed or interrupted is a real process; the rest runs the same command line here, which saves its start.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.answering.engine import Engine
from app.batch.answering import Answerer
from app.batch.datasets import load
from app.batch.rows import read_rows
from app.batch.run import Run
from app.batch.run_folder import open_run
from app.batch.summary import Summary
from app.commands.cli import cli
from app.documents.indexing import index_files
from app.setup.settings import Paths, Settings
from indexes.errors import QuotewrightError
from tests.app.batch.test_forms import HAGRID
from tests.app.tiny_models import write_batch

APP = str(Path(__file__).parents[3] / "app.py")
QUESTIONS = 40
BAD = 5  # the row that cannot be read
TIMES = ("retrieval_s", "time_to_first_token_s", "decode_s", "total_s", "tokens_per_s")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model, a tiny encoder and forty questions, one of them a bad row."""
    return write_batch(tmp_path_factory.mktemp("batch"), QUESTIONS, {BAD: "torn"})


def arguments_with(*more: str) -> list[str]:
    return [
        "batch", "--dataset", "q.jsonl", "--profile", "gpu", "--device", "cpu",
        "--model", "model", "--encoder", "encoder", "--reranker", "none", "--drafter", "trie",
        # the tiny model repeats itself otherwise, and all its answers are the same
        "--repetition-penalty", "1.3", "--max-new-tokens", "60", *more,
    ]  # fmt: skip


def environment(home: Path) -> dict[str, str]:
    return {"QUOTEWRIGHT_HOME": str(home / "home"), "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}


def begin(home: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, APP, *arguments_with(*more)], env=os.environ | environment(home), cwd=home,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(home: Path, *more: str) -> Result:
    """The command line in this process; a refusal is the result's exception."""
    with contextlib.chdir(home):
        return CliRunner().invoke(cli, arguments_with(*more), env=environment(home))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run without the figures that no two runs share."""
    rows = list(read_rows(folder / "rows.jsonl"))
    for row in rows:
        for name in TIMES:
            row.get("stats", {}).pop(name, None)
    return rows


@pytest.fixture(scope="module")
def whole(home: Path) -> tuple[str, str]:
    """What an uninterrupted run prints on stdout and stderr."""
    process = begin(home, "--out", "whole", "--json")
    told = process.communicate(timeout=300)
    assert process.returncode == 0, told[1]
    return told


def test_a_row_holds_the_question_the_answer_its_passages_spans_figures_and_scores(
    home: Path, whole: tuple[str, str]
) -> None:
    row = next(read_rows(home / "whole" / "rows.jsonl"))
    assert (row["row"], row["id"], row["question"], row["expected"]) == (0, "1", "what is a?", ["a"])
    assert [passage["text"] for passage in row["passages"]] == ["the a is a function, number 0."]
    assert (row["error"], row["finished"], row["stats"]["drafter"]) == (None, "length", "trie")
    assert set(row["scores"]) == {"exact_match", "f1", "contains", "rouge_l"}
    assert isinstance(row["spans"], list)
    assert row["answer"]


def test_a_bad_row_is_recorded_and_the_others_are_answered(home: Path, whole: tuple[str, str]) -> None:
    rows = list(read_rows(home / "whole" / "rows.jsonl"))
    assert [row["row"] for row in rows] == list(range(QUESTIONS))
    assert [row["error"] for row in rows if row["error"]] == [
        {"type": "DocumentError", "message": "line 6 is not JSON: Expecting value: line 1 column 1 (char 0)"}
    ]


def test_the_summary_is_printed_and_kept_beside_a_report(home: Path, whole: tuple[str, str]) -> None:
    summary = json.loads(whole[0])
    assert json.loads((home / "whole" / "summary.json").read_text()) == summary
    assert (summary["questions"], summary["answered"], summary["failed"]) == (QUESTIONS, QUESTIONS - 1, 1)
    assert (summary["run"]["dataset"], summary["run"]["temperature"]) == ("q.jsonl", 0.0)
    assert (home / "whole" / "report.md").read_text().startswith("# q.jsonl\n")


def test_the_progress_names_speed_accept_length_and_failures(whole: tuple[str, str]) -> None:
    last = [line for line in whole[1].splitlines() if line.startswith(f"{QUESTIONS} of {QUESTIONS}: ")][-1]
    assert [part for part in ("questions/s", "accept length", "left", "1 failed") if part not in last] == []


def wait_for_rows(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until a file has that many lines."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.001)
    raise AssertionError(f"the run ended before its {count} rows: {process.communicate()[1]}")


def test_killed_again_and_again_a_run_ends_as_the_uninterrupted_one(home: Path, whole: tuple[str, str]) -> None:
    for count, delay_s in ((1, 0.0), (9, 0.013), (21, 0.031)):
        process = begin(home, "--out", "killed")
        wait_for_rows(home / "killed" / "rows.jsonl", count, process)
        time.sleep(delay_s)
        process.kill()
        process.communicate()
    with (home / "killed" / "rows.jsonl").open("ab") as file:
        file.write(b'{"row": 39, "answer": "to')  # torn, as by a kill within a write
    done = run(home, "--out", "killed")
    assert done.exit_code == 0, done.stderr
    assert "1 row(s) of killed/rows.jsonl are dropped and answered again" in done.stderr
    assert f"of {QUESTIONS} questions are answered already" in done.stderr
    answers = [(row["row"], row.get("answer"), row["scores"]) for row in rows_of(home / "killed")]
    assert answers == [(row["row"], row.get("answer"), row["scores"]) for row in rows_of(home / "whole")]
    assert len({answer for _, answer, _ in answers}) > 10  # they do differ, so this says something


def test_ctrl_c_leaves_a_run_that_can_be_resumed(home: Path, whole: tuple[str, str]) -> None:
    process = begin(home, "--out", "stopped")
    wait_for_rows(home / "stopped" / "rows.jsonl", 3, process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in told) == (130, False)
    assert f"of {QUESTIONS} questions; the same command goes on from there" in told
    assert run(home, "--out", "stopped").exit_code == 0
    assert [row.get("answer") for row in rows_of(home / "stopped")] == [
        row.get("answer") for row in rows_of(home / "whole")
    ]


def test_compared_with_plain_decoding_every_answer_is_the_same(home: Path, whole: tuple[str, str]) -> None:
    done = run(home, "--out", "compared", "--compare", "plain", "--limit", "6", "--json")
    plain = json.loads(done.stdout)["plain"]
    assert (plain["answers"], plain["identical_answers"]) == (5, 5)
    assert plain["speed_up_decoding"] > 0
    assert plain["speed_up_answers"] > 0
    rows = rows_of(home / "compared")
    assert {row["plain"]["stats"]["drafter"] for row in rows if not row["error"]} == {"plain"}
    assert [row.get("answer") for row in rows] == [row.get("answer") for row in rows_of(home / "whole")[:6]]


def test_a_finished_run_is_summed_up_again_without_loading_a_model(home: Path, whole: tuple[str, str]) -> None:
    again = run(home, "--out", "whole", "--json")
    assert again.stdout == whole[0]
    assert "Loading" not in again.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "whole", "--max-new-tokens", "61"], ["has other settings", "max_new_tokens was 60 and is 61"]),
        (["--out", "whole", "--limit", "3"], ["rows was 40 and is 3; limit was null and is 3"]),
        (["--out", "n", "--compare", "magic"], ["compare is 'magic'; the only choice is plain"]),
        (["--out", "n", "--compare", "plain", "--drafter", "plain"], ["nothing to compare"]),
        (["--out", "n", "--dataset", "none.jsonl"], ["there is no data set or file 'none.jsonl'"]),
        (["--out", "n", "--index", "nothere"], ["there is no index named 'nothere'"]),
        (["--out", "n", "--split", "dev"], ["q.jsonl has no splits"]),
        (["--out", "q.jsonl"], ["is a file; give a folder"]),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_message(
    home: Path, whole: tuple[str, str], arguments: Sequence[str], words: Sequence[str]
) -> None:
    done = run(home, *arguments)
    assert isinstance(done.exception, QuotewrightError)
    assert [word for word in words if word not in str(done.exception)] == []
    assert (done.stdout, (home / "n").exists()) == ("", False)


def test_a_refusal_ends_the_process_with_two_and_no_traceback(home: Path) -> None:
    (home / "bare.csv").write_text("question,answer\nwhat is a?,a\n")
    process = begin(home, "--out", "n", "--dataset", "bare.csv")
    printed, told = process.communicate(timeout=300)
    assert (process.returncode, printed, "Traceback" in told) == (2, "", False)
    assert "bring no passages; choose the index that answers them: --index NAME" in told


def test_the_help_names_the_data_sets_and_has_an_example(home: Path) -> None:
    done = CliRunner().invoke(cli, ["batch", "--help"], env=environment(home))
    assert done.exit_code == 0
    parts = ("triviaqa", "hagrid", "SQuAD", "question column", "--temperature", "python app.py batch -d python-docs")
    assert [part for part in parts if part not in done.stdout] == []


def test_a_second_process_is_kept_out_of_a_run(home: Path, whole: tuple[str, str]) -> None:
    settings = json.loads((home / "whole" / "run.json").read_text())["settings"]
    with open_run(home / "held", settings), ThreadPoolExecutor(1) as other:
        done = other.submit(run, home, "--out", "held").result()
    assert "another process is writing a run into held" in str(done.exception)


def test_a_data_set_that_changed_is_not_mixed_with_the_old_one(home: Path, whole: tuple[str, str]) -> None:
    (home / "changed").mkdir()
    for name in ("run.json", "rows.jsonl"):
        text = (home / "whole" / name).read_text()
        (home / "changed" / name).write_text(
            text.replace(next(read_rows(home / "whole" / "rows.jsonl"))["digest"], "0")
        )
    done = run(home, "--out", "changed")
    assert "row 1 of q.jsonl is another question now" in str(done.exception)


def test_a_line_that_no_run_has_written_is_named(home: Path, whole: tuple[str, str]) -> None:
    (home / "foreign").mkdir()
    (home / "foreign" / "run.json").write_bytes((home / "whole" / "run.json").read_bytes())
    (home / "foreign" / "rows.jsonl").write_text('{"row": 3}\n')
    told = str(run(home, "--out", "foreign").exception)
    assert "row 3 in foreign/rows.jsonl is no row of a run (KeyError: 'scores'); remove its line" in told


def test_what_failed_is_asked_again_on_demand(home: Path, whole: tuple[str, str]) -> None:
    done = run(home, "--out", "whole", "--retry-failed", "--json")
    assert "1 row(s) of whole/rows.jsonl are dropped and answered again" in done.stderr
    assert json.loads(done.stdout)["failed"] == 1  # it is as bad as before, and recorded once
    assert sorted(row["row"] for row in read_rows(home / "whole" / "rows.jsonl")) == list(range(QUESTIONS))


# Where passages come from, with every kind of row


def write(home: Path, name: str, *rows: dict[str, Any]) -> str:
    (home / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def test_hagrid_s_quotes_are_read_and_citations_of_them_are_scored(home: Path) -> None:
    done = run(home, "--out", "hagrid", "--dataset", write(home, "hagrid.jsonl", HAGRID), "--json")
    (row,) = read_rows(home / "hagrid" / "rows.jsonl")
    assert [passage["id"] for passage in row["passages"]] == ["1", "2"]
    assert (row["citations"], row["scores"]["citation_recall"]) == ([], 0.0)  # a tiny model copies nothing
    assert json.loads(done.stdout)["scores"]["citation_recall"] == 0.0


def test_a_whole_prompt_goes_to_the_model_as_it_is_and_spans_are_looked_for_in_it(home: Path) -> None:
    run(home, "--out", "prompts", "--dataset", write(home, "spec.jsonl", {"question_id": 1, "turns": ["say a."]}))
    (row,) = read_rows(home / "prompts" / "rows.jsonl")
    assert [(passage["id"], passage["text"]) for passage in row["passages"]] == [("prompt", "say a.")]
    assert row["stats"]["prompt_tokens"] == len("say a.") + 3  # a mark before it, one after it, one for the answer


def test_of_long_pages_the_best_pieces_are_read(home: Path) -> None:
    page = "a lambda is here. " + "b is c. " * 2000 + "the zebra is a function."
    name = write(home, "long.jsonl", {"question": "what is a zebra?", "context": page})
    run(home, "--out", "long", "--dataset", name, "--top-k", "1")
    (row,) = read_rows(home / "long" / "rows.jsonl")
    (passage,) = row["passages"]
    assert passage["text"].endswith("the zebra is a function.")
    assert page[passage["start"] :] == passage["text"]


def test_an_index_is_searched_for_rows_without_passages(home: Path) -> None:
    (home / "notes.txt").write_text("the lambda is a function.")
    flags = ["--profile", "gpu", "--device", "cpu", "--encoder", "encoder", "--reranker", "none"]
    with contextlib.chdir(home):
        made = CliRunner().invoke(cli, ["index", "notes.txt", "--name", "notes", *flags], env=environment(home))
    assert made.exit_code == 0, made.output
    name = write(home, "bare.jsonl", {"question": "what is lambda?"})
    done = run(home, "--out", "indexed", "--dataset", name, "--index", "notes", "--json")
    (row,) = read_rows(home / "indexed" / "rows.jsonl")
    assert [passage["text"] for passage in row["passages"]] == ["the lambda is a function."]
    settings = json.loads(done.stdout)["run"]
    assert (settings["index"], len(settings["index_digest"])) == ("notes", 64)


def test_a_row_without_passages_fails_alone_where_the_others_have_some(home: Path) -> None:
    name = write(home, "mixed.jsonl", {"question": "a?", "context": "a."}, {"question": "b?"})
    run(home, "--out", "mixed", "--dataset", name)
    first, second = read_rows(home / "mixed" / "rows.jsonl")
    assert (first["error"], second["error"]["message"]) == (
        None, "the question brings no passages, and no index was chosen with --index NAME",
    )  # fmt: skip


def test_failures_in_a_row_that_are_no_question_s_fault_end_the_run_and_can_be_asked_again(home: Path) -> None:
    write(home, "many.jsonl", *({"question": "what is lambda?"} for _ in range(30)))
    engine = Engine(
        Settings(
            profile="gpu", device="cpu", model=str(home / "model"), encoder=str(home / "encoder"), reranker="none",
            drafter="trie", max_new_tokens=5,
        ),
        home=Paths(home / "home" / "data", home / "home" / "cache"),
    )  # fmt: skip
    index, away = engine.paths.indexes / "going", engine.paths.indexes / "gone"
    (home / "going.txt").write_text("the lambda is a function.")
    index_files(engine, index, [home / "going.txt"])
    told: list[str] = []

    def once(retry_failed: bool, progress: Callable[[Summary], None]) -> dict[str, Any]:
        data = load(str(home / "many.jsonl"))
        return Run(data, Answerer(engine, index), home / "many", told.append).go(None, retry_failed, progress)

    def lose_the_index(summary: Summary) -> None:
        if summary.questions == 3:
            index.rename(away)

    with pytest.raises(QuotewrightError, match="20 questions in a row failed, the last with: there is no index named"):
        once(False, lose_the_index)
    assert [bool(row["error"]) for row in read_rows(home / "many" / "rows.jsonl")] == [False] * 3 + [True] * 20
    away.rename(index)
    summary = once(True, lambda _: None)
    assert (summary["answered"], summary["failed"]) == (30, 0)
    assert "Resuming: 3 of 30 questions are answered already" in told
