"""vLLM's OpenAI server with our drafter in it: the command, its environment, and the process until it ends.

vLLM lives in an environment of its own; nothing of it is imported here. Knows no settings but what it is given.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from indexes.errors import SettingError

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = REPOSITORY / ".venv-vllm"
PROPOSER = "decoding.vllm_proposer.Proposer"
ENDS_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class VllmServer:
    """What is served, where, and with what: `key` is asked of every request, `extra` goes to vLLM as it is."""

    python: Path
    model: Path
    name: str
    host: str
    port: int
    draft_tokens: int
    key: str | None = None
    extra: Sequence[str] = ()

    def command(self) -> list[str]:
        """The line that starts it; no secret is in it. Not `vllm serve`, which the CPU build of 0.32 cannot start."""
        options = ["--served-model-name", self.name, "--host", self.host, "--port", str(self.port)]
        if self.draft_tokens:
            options += ["--speculative-config", json.dumps(speculative_config(self.draft_tokens))]
        module = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(self.model)]
        return [str(self.python), *module, *options, *self.extra]

    def environment(self, given: Mapping[str, str], cache: Path) -> dict[str, str]:
        """The given variables, with ours where nothing else is said: our code to import, and nothing calls home."""
        path = os.pathsep.join([str(REPOSITORY), *([given["PYTHONPATH"]] if given.get("PYTHONPATH") else [])])
        added = {"VLLM_NO_USAGE_STATS": "1", "NUMBA_CACHE_DIR": str(cache / "vllm-kernels")}
        added |= openmp(self.python)
        kept = {name: value for name, value in given.items() if not name.startswith("QUOTEWRIGHT_")}
        return added | kept | {"PYTHONPATH": path} | ({"VLLM_API_KEY": self.key} if self.key else {})


def openmp(python: Path) -> dict[str, str]:
    """Variables that make vLLM's CPU build use Intel's OpenMP, which comes with it on x86: as it sets them for workers
    that it starts itself. Without it drafting costs it more than it brings. Nothing where the library is missing."""
    library = python.absolute().parents[1] / "lib" / "libiomp5.so"
    return {"LD_PRELOAD": str(library), "KMP_BLOCKTIME": "5", "KMP_TPAUSE": "0"} if library.is_file() else {}


def speculative_config(draft_tokens: int) -> dict[str, object]:
    """What tells vLLM of our drafter: chains of up to so many tokens."""
    return {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": draft_tokens}


def find_python(chosen: Path | None) -> Path:
    """The interpreter that has vLLM. Raises SettingError where there is none."""
    python = (chosen or ENVIRONMENT / "bin" / "python").expanduser()
    if not python.is_file():
        raise SettingError(
            f"there is no vLLM environment at {python}: make one with `make vllm-env`, or name an interpreter that has "
            "vLLM with --vllm-python (QUOTEWRIGHT_VLLM_PYTHON)"
        )
    return python


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run until it ends, or we are told to; then none of its processes is left. Returns its exit code.

    Raises KeyboardInterrupt when told to, and OSError if it cannot be started.
    """
    process = subprocess.Popen(command, env=dict(environment), start_new_session=True)
    previous = signal.signal(signal.SIGTERM, _interrupt) if _in_main_thread() else None
    try:
        return process.wait()
    finally:
        _stop(process)
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, as Ctrl-C would; then kill what is left of its group."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # vLLM itself ends its workers then
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C is impatience
                process.wait(ENDS_WITHIN_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
