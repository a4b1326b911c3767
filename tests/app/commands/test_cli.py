"""The command line as real processes, with the laptop profile's real models from the user's cache."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.setup.settings import paths

APP = str(Path(__file__).parents[3] / "app.py")
STATS = {
    "drafter", "prompt_tokens", "new_tokens", "forward_passes", "accept_length", "draft_nodes", "copied_fraction",
    "time_to_first_token_s", "total_s", "tokens_per_s",
}  # fmt: skip
NOTES = "The kettle holds two litres of water. It was made in Leeds in 1951 by a company of three brothers."


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"QUOTEWRIGHT_HOME": str(home), "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process with its own data folder and the user's models."""
    command = [sys.executable, APP, *arguments]
    return subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=300, cwd=home)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an index "notes" made by the command line; bad files lie among the good ones."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "cache").symlink_to(paths().cache, target_is_directory=True)
    notes = folder / "notes"
    notes.mkdir()
    (notes / "kettle.txt").write_text(NOTES)
    (notes / "empty.txt").write_text("")
    Path(notes, b"\xff\x1b[31m.txt".decode("utf-8", "surrogateescape")).write_bytes(b"\0")
    done = run(folder, "index", "notes", "--name", "notes")
    assert done.returncode == 0, done.stderr
    assert "notes: 1 documents, 1 passages (Flat vectors); 1 new or changed, 0 removed." in done.stdout
    assert "Skipped 2:" in done.stdout
    assert "empty.txt: empty" in done.stdout
    assert "\x1b[31m" not in done.stdout
    return folder


def assert_user_error(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == []


# Asking


@pytest.fixture(scope="module")
def answered(home: Path) -> subprocess.CompletedProcess[str]:
    return run(home, "ask", "How much water does the kettle hold?", "--index", "notes", "--json")


def test_json_is_one_object_with_every_key_and_nothing_else(answered: subprocess.CompletedProcess[str]) -> None:
    assert (answered.returncode, answered.stdout.count("\n")) == (0, 1)
    answer = json.loads(answered.stdout)
    assert {"question", "answer", "passages", "spans", "stats"} <= set(answer)
    assert set(answer["stats"]) >= STATS
    (passage,) = answer["passages"]
    assert set(passage) == {"id", "source", "page", "start", "score", "relevance", "text"}
    assert (passage["id"], passage["source"], passage["page"], passage["start"], passage["text"]) == (
        "notes/kettle.txt#0", "notes/kettle.txt", None, 0, NOTES,
    )  # fmt: skip


def test_every_span_of_the_json_holds_the_same_words_on_both_sides(answered: subprocess.CompletedProcess[str]) -> None:
    answer = json.loads(answered.stdout)
    assert answer["spans"]
    for span in answer["spans"]:
        assert set(span) == {"start", "end", "passage_id", "passage_start", "passage_end"}
        copied = answer["answer"][span["start"] : span["end"]]
        assert copied.split() == NOTES[span["passage_start"] : span["passage_end"]].split()


def test_an_unknown_index_names_the_command_that_makes_it(home: Path) -> None:
    done = run(home, "ask", "x", "--index", "nothere")
    assert_user_error(done, "there is no index named 'nothere'", "python app.py index PATH... --name nothere")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", "x", "--drafter", "crystal-ball"], ["crystal-ball", "trie", "plain"]),
        (["ask", "x", "--drafter", "ouroboros"], ["'ouroboros' needs a draft model", "--draft-model ID"]),
        (["ask", "x", "--profile", "huge"], ["unknown profile 'huge'", "laptop, desktop, gpu"]),
        (["ask", "  ", "--index", "notes"], ["the question is empty"]),
        (["ask", "x", "--index", "../x"], ["cannot be the name of an index"]),
        (["chat", "--finder", "a.py:b"], ["the chat page asks indexes", "ask, batch and serve --no-page"]),
        (["serve", "--page", "--finder", "a.py:b"], ["the chat page asks indexes"]),
        (["ask", "x", "--finder", "none.py:store"], ["the finder 'none.py:store' cannot be loaded", "file.py:name"]),
        (["ask", "x", "--top-k", "0"], ["top_k", "greater than or equal to 1"]),
        (["ask", "x", "--temperature", "-1"], ["sampling's temperature is -1.0", "0 (greedy), or 0.01 to 100"]),
        (["ask", "x", "--seed", "-1"], ["sampling's seed is -1", "from 0 to"]),
        (["ask", "x", "--model", "~nobody/none", "--index", "notes"], ["was not found", "Tried:"]),
        (["index", "nowhere", "--name", "n"], ["there is no file or folder 'nowhere'"]),
        (["index", "notes/empty.txt", "--name", "n"], ["nothing was indexed", "empty.txt: empty"]),
    ],
)
def test_a_user_s_error_ends_with_two_and_a_message(home: Path, arguments: Sequence[str], words: Sequence[str]) -> None:
    assert_user_error(run(home, *arguments), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], ["nonsense"]),
        (["--nonsense"], ["--nonsense"]),
        (["ask"], ["Missing argument 'question'"]),
        (["ask", "x", "--top-k", "many"], ["--top-k", "valid integer"]),
        (["chat", "--port", "0"], ["--port", "greater than or equal to 1"]),
        (["index", "notes"], ["--name NAME"]),
        (["trace", "--answer-file", "none", "--passages-file", "none"], ["none cannot be read"]),
        (["trace"], ["--answer-file"]),
    ],
)
def test_a_usage_error_ends_with_two_and_no_traceback(
    home: Path, arguments: Sequence[str], words: Sequence[str]
) -> None:
    assert_user_error(run(home, *arguments), *words)


def test_ctrl_c_ends_with_130_and_no_traceback(home: Path) -> None:
    command = [sys.executable, APP, "ask", "Tell me everything.", "--index", "notes", "--max-new-tokens", "2000"]
    process = subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    watchdog = threading.Timer(200, process.kill)
    watchdog.start()
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    watchdog.cancel()
    assert (process.returncode, "Loading" in first, "Traceback" in rest) == (130, True, False)


# Tracing


def trace(home: Path, answer: bytes, passages: bytes, *options: str) -> subprocess.CompletedProcess[str]:
    (home / "answer.txt").write_bytes(answer)
    (home / "passages.jsonl").write_bytes(passages)
    return run(home, "trace", "--answer-file", "answer.txt", "--passages-file", "passages.jsonl", *options)


def test_trace_prints_the_spans_of_any_answer(home: Path) -> None:
    passages = '{"id": "p", "text": "so the quick brown fox ran\u2028away"}\n\n{"id": 7, "text": "no"}\n'
    done = trace(home, b"A\r\nthe quick brown fox!", passages.encode(), "--json")
    # of the answer's 18 characters without white space, A and ! are not copied
    assert json.loads(done.stdout) == {
        "spans": [{"start": 3, "end": 22, "passage_id": "p", "passage_start": 3, "passage_end": 22}],
        "copied_fraction": pytest.approx(16 / 18),
    }


@pytest.mark.parametrize(
    ("passages", "words"),
    [
        (b"not json", ["line 1 is not JSON"]),
        (b'{"id": 1, "text": "x"}\n[1]', ["line 2 must be an object"]),
        (b"[" * 100_000, ["line 1 is not JSON"]),
        (b"\xff\xfe", ["cannot be read as UTF-8 text"]),
    ],
)
def test_passages_that_cannot_be_read_are_named_by_line(home: Path, passages: bytes, words: Sequence[str]) -> None:
    assert_user_error(trace(home, b"x", passages), *words)


def test_a_text_that_no_terminal_can_show_is_shown_escaped(home: Path) -> None:
    done = trace(home, b"a \x1b[31mb", rb'{"id": "\ud800", "text": "a"}')
    assert (done.returncode, "a ␛[31mb" in done.stdout) == (0, True)


# Help


def test_help_lists_every_command(home: Path) -> None:
    done = run(home, "--help")
    assert done.returncode == 0
    assert [name for name in ("chat", "ask", "index", "trace", "setup") if f" {name} " not in done.stdout] == []


@pytest.mark.parametrize("command", ["chat", "ask", "index", "trace", "setup"])
def test_every_command_s_help_has_an_example(home: Path, command: str) -> None:
    done = run(home, command, "--help")
    assert done.returncode == 0
    assert f"python app.py {command}" in done.stdout


def test_a_reader_that_goes_away_is_no_error_worth_a_traceback(home: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, APP, "--help"],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    assert process.wait(60) in (0, 1)
