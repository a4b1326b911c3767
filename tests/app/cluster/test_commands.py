"""The commands with --engine ray: Ray of their own, which nobody else reaches and which ends with them, and refusals.

What is interrupted is a real process; models are tiny.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.batch.rows import read_rows
from app.commands.cli import cli
from indexes.errors import QuotewrightError
from tests.app.cluster.conftest import Nodes
from tests.app.cluster.processes import alive, command_line, descendants, environment, listening
from tests.app.tiny_models import write_batch

APP = str(Path(__file__).parents[3] / "app.py")
QUESTIONS = 60
LOOPBACKS = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
MODELS = ["--profile", "gpu", "--device", "cpu", "--encoder", "encoder", "--reranker", "none"]
BATCH = [
    "batch", "--dataset", "q.jsonl", *MODELS, "--model", "model", "--drafter", "trie",
    "--repetition-penalty", "1.3", "--max-new-tokens", "60",
]  # fmt: skip

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model, a tiny encoder, questions and notes."""
    folder = write_batch(tmp_path_factory.mktemp("spread"), QUESTIONS)
    (folder / "notes").mkdir()
    for number in range(30):
        (folder / "notes" / f"{number}.txt").write_text(f"note {number}: the lambda is a function of {number}.")
    return folder


def settings(home: Path) -> dict[str, str]:
    return {"QUOTEWRIGHT_HOME": str(home / "home"), "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}


def run(home: Path, *arguments: str) -> Result:
    """The command line in this process; a refusal is the result's exception."""
    with contextlib.chdir(home):
        return CliRunner().invoke(cli, arguments, env=settings(home))


def wait_for(what: str, holds: object, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"no {what} after {seconds} s"
        time.sleep(0.05)


class Interrupted:
    """A batch run on Ray of its own that was interrupted after five rows: what was seen of it."""

    def __init__(self, home: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, APP, *BATCH, "--engine", "ray", "--actors", "1", "--out", "stopped"],
            env=os.environ | settings(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        rows = home / "stopped" / "rows.jsonl"
        wait_for("rows", lambda: process.poll() is not None or (rows.exists() and rows.read_bytes().count(b"\n") >= 5))
        self.pids = descendants(process.pid)
        self.listening = listening(self.pids)
        self.commands = [command_line(pid) for pid in self.pids]
        self.environments = [environment(pid) for pid in self.pids[1:]]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of them get it
        _, self.told = process.communicate(timeout=120)
        self.code = process.returncode


@pytest.fixture(scope="module")
def interrupted(home: Path) -> Interrupted:
    return Interrupted(home)


@linux
def test_rays_processes_listen_on_loopback_only_and_want_a_token(interrupted: Interrupted) -> None:
    assert any("raylet" in command for command in interrupted.commands)  # they were there to be looked at
    assert interrupted.listening
    assert interrupted.listening <= LOOPBACKS
    tokens = {found.get("RAY_AUTH_TOKEN", "") for found in interrupted.environments if "RAY_AUTH_MODE" in found}
    assert {found["RAY_AUTH_MODE"] for found in interrupted.environments if "RAY_AUTH_MODE" in found} == {"token"}
    (token,) = tokens
    assert len(token) == 64
    assert [command for command in interrupted.commands if token in command] == []


@linux
def test_ctrl_c_ends_the_run_and_ray(interrupted: Interrupted) -> None:
    assert (interrupted.code, "Traceback" in interrupted.told) == (130, False)
    assert f"of {QUESTIONS} questions; the same command goes on from there" in interrupted.told
    wait_for("end of Ray's processes", lambda: not alive(interrupted.pids), 30)
    folders = set(re.findall(r"/\S*quotewright-ray-\w+", " ".join(interrupted.commands)))
    assert len(folders) == 1
    assert [folder for folder in folders if Path(folder).exists()] == []


def test_a_run_begun_on_ray_goes_on_without_it(home: Path, interrupted: Interrupted) -> None:
    assert run(home, *BATCH, "--out", "whole").exit_code == 0
    done = run(home, *BATCH, "--out", "stopped")
    assert done.exit_code == 0
    assert "Resuming: " in done.stderr
    rows = {row["row"]: row["answer"] for row in read_rows(home / "stopped" / "rows.jsonl")}
    assert rows == {row["row"]: row["answer"] for row in read_rows(home / "whole" / "rows.jsonl")}
    assert sorted(rows) == list(range(QUESTIONS))


def test_an_index_is_made_and_brought_up_to_date_on_a_cluster(home: Path, cluster: Nodes) -> None:
    cluster.complete()
    index = ["index", "notes", "--name", "notes", *MODELS, "--engine", "ray", "--ray-address", cluster.address]
    made = run(home, *index, "--json")
    assert made.exit_code == 0, made.exception
    assert json.loads(made.stdout)["encoded"] == 30
    (home / "notes" / "3.txt").write_text("note 3 is another one.")
    again = run(home, *index, "--json")
    assert again.exit_code == 0, again.exception
    assert json.loads(again.stdout)["encoded"] == 1


def test_whoever_has_another_token_is_not_let_in(home: Path, cluster: Nodes) -> None:
    """In a process of its own, for a process keeps its token."""
    index = ["index", "notes", "--name", "n", *MODELS, "--engine", "ray", "--ray-address", cluster.address]
    done = subprocess.run(
        [sys.executable, APP, *index], env=os.environ | settings(home) | {"RAY_AUTH_TOKEN": "0" * 64},
        cwd=home, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
    assert f"Error: the Ray cluster at {cluster.address} could not be joined" in done.stderr
    assert "its token in RAY_AUTH_TOKEN" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ray-address", "10.0.0.7:6379"], "--ray-address 10.0.0.7:6379 is for --engine ray"),
        (["--actors", "2"], "--actors 2 is for --engine ray"),
        (["--engine", "ray", "--ray-address", "ray://10.0.0.7:10001"], "give HOST:PORT or auto"),
    ],
)
def test_options_that_cannot_be_are_refused(home: Path, arguments: Sequence[str], words: str) -> None:
    for command in ([*BATCH, "--out", "none"], ["index", "notes", "--name", "none", *MODELS]):
        done = run(home, *command, *arguments)
        assert isinstance(done.exception, QuotewrightError)
        assert words in str(done.exception)


def test_without_ray_the_error_says_how_to_install_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # to Python the same as not being there
    done = run(home, *BATCH, "--out", "none", "--engine", "ray")
    assert "is not installed; install it with: python -m pip install -r requirements-ray.txt" in str(done.exception)


def test_a_cluster_that_is_not_there_is_named(home: Path) -> None:
    done = run(home, *BATCH, "--out", "none", "--engine", "ray", "--ray-address", "127.0.0.1:9")
    assert "there is no Ray cluster at 127.0.0.1:9" in str(done.exception)
