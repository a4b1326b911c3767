"""`serve-vllm`, as a process. In place of vLLM, which has an environment of its own, stands a module that tells what it
was started with and has a child; `make test-vllm` runs the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from app.setup.vllm_server import PROPOSER, VllmServer
from tests.benchmarks.test_peers import _becomes as becomes

ROOT = Path(__file__).parents[3]
STANDS_IN = """
    import contextlib, json, os, signal, subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    names = ("VLLM_API_KEY", "PYTHONPATH", "VLLM_NO_USAGE_STATS", "QUOTEWRIGHT_API_KEYS")
    told = {"arguments": sys.argv[1:], "child": child.pid, "pid": os.getpid()}
    with open(os.environ["TELL"] + ".new", "w") as file:
        json.dump(told | {name: os.environ.get(name) for name in names}, file)
    os.rename(os.environ["TELL"] + ".new", os.environ["TELL"])
    if "--fail" in sys.argv:
        sys.exit(7)
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(KeyboardInterrupt):
        time.sleep(600)
"""


class Running:
    """`app.py serve-vllm` for a folder, and what its vLLM told."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        module = folder / "site" / "vllm" / "entrypoints" / "openai" / "api_server.py"
        module.parent.mkdir(parents=True)
        module.write_text(textwrap.dedent(STANDS_IN))
        (folder / "model").mkdir()
        self._tell = folder / "told.json"
        names = {"PYTHONPATH": str(folder / "site"), "TELL": str(self._tell), "QUOTEWRIGHT_HOME": str(folder / "home")}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "app.py",
                "serve-vllm",
                str(folder / "model"),
                "--vllm-python",
                sys.executable,
                *arguments,
            ],
            cwd=ROOT,
            env=os.environ | names | variables,
            stderr=subprocess.PIPE,
            text=True,
        )

    def told(self) -> dict[str, object]:
        deadline = time.monotonic() + 60
        while not self._tell.exists():
            assert time.monotonic() < deadline, "vLLM was not started"
            time.sleep(0.05)
        told: dict[str, object] = json.loads(self._tell.read_text())
        return told


def refusal(*arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "app.py", "serve-vllm", *arguments],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_without_an_environment_the_message_says_how_to_make_one(tmp_path: Path) -> None:
    assert "make vllm-env" in refusal("some/model", "--vllm-python", str(tmp_path / "python"))


def test_an_address_that_others_reach_needs_a_key() -> None:
    assert "set keys" in refusal("some/model", "--host", "0.0.0.0")


def test_several_keys_are_refused_for_vllm_takes_one() -> None:
    assert "takes one API key" in refusal("some/model", QUOTEWRIGHT_API_KEYS="one,two")


def test_vllm_is_started_with_our_drafter_and_the_key_stays_off_the_command_line(tmp_path: Path) -> None:
    running = Running(tmp_path, "--port", "8123", "--", "--max-model-len", "512", QUOTEWRIGHT_API_KEYS="secret")
    told = running.told()
    running.process.send_signal(signal.SIGINT)
    running.process.communicate(timeout=30)
    arguments = told["arguments"]
    assert isinstance(arguments, list)
    assert arguments[:2] == ["--model", str(tmp_path / "model")]
    assert arguments[-2:] == ["--max-model-len", "512"]
    assert arguments[arguments.index("--port") + 1] == "8123"
    assert arguments[arguments.index("--host") + 1] == "127.0.0.1"
    config = json.loads(arguments[arguments.index("--speculative-config") + 1])
    assert (config["method"], config["model"], config["num_speculative_tokens"]) == ("custom_class", PROPOSER, 24)
    assert "secret" not in " ".join(arguments)
    assert (told["VLLM_API_KEY"], told["QUOTEWRIGHT_API_KEYS"], told["VLLM_NO_USAGE_STATS"]) == ("secret", None, "1")
    assert str(told["PYTHONPATH"]).split(os.pathsep)[0] == str(ROOT)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_when_it_is_told_to_end_nothing_of_it_is_left(tmp_path: Path, end: signal.Signals) -> None:
    running = Running(tmp_path)
    told = running.told()
    running.process.send_signal(end)
    _, errors = running.process.communicate(timeout=30)
    assert running.process.returncode == 130
    assert "Traceback" not in errors
    assert becomes(int(str(told["pid"])), "Z")
    assert becomes(int(str(told["child"])), "Z")


def test_a_server_that_ends_by_itself_is_told_of_and_leaves_no_child(tmp_path: Path) -> None:
    running = Running(tmp_path, "--", "--fail")
    _, errors = running.process.communicate(timeout=60)
    assert running.process.returncode == 1
    assert "exit code 7" in errors
    assert becomes(int(str(running.told()["child"])), "Z")


def test_a_server_that_does_not_end_when_told_to_is_killed(tmp_path: Path) -> None:
    running = Running(tmp_path, "--", "--stubborn")
    told = running.told()
    running.process.send_signal(signal.SIGTERM)
    time.sleep(1)
    running.process.send_signal(signal.SIGINT)  # a second time: no more waiting
    running.process.communicate(timeout=30)
    assert becomes(int(str(told["pid"])), "Z")


def test_no_draft_tokens_means_vllm_alone(tmp_path: Path) -> None:
    server = VllmServer(tmp_path / "bin" / "python", tmp_path, "name", "127.0.0.1", 8000, 0)
    assert "--speculative-config" not in server.command()


def test_what_the_user_has_set_is_kept_and_the_cpu_builds_library_is_loaded_first(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libiomp5.so").touch()
    server = VllmServer(tmp_path / "bin" / "python", tmp_path, "name", "127.0.0.1", 8000, 8)
    found = server.environment({"KMP_BLOCKTIME": "1", "HOME": "/home/somebody"}, tmp_path)
    assert found["LD_PRELOAD"] == str(tmp_path / "lib" / "libiomp5.so")
    assert (found["KMP_BLOCKTIME"], found["HOME"]) == ("1", "/home/somebody")
    assert "VLLM_API_KEY" not in found
