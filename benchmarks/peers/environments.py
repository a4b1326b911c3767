"""Where each foreign engine is installed, and how: an environment of its own each, for their pins fight with ours.

Packages come through pip, so that the user's own pip settings apply.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from app.setup.models import Say
from app.setup.vllm_server import openmp
from indexes.errors import SettingError
from indexes.files import write_whole

INSTALLED = "quotewright.json"
INSTALL = "python -m benchmarks peers --install"


@dataclass(frozen=True, slots=True)
class Environment:
    """A foreign engine's environment: arguments of pip, step by step."""

    name: str
    steps: tuple[tuple[str, ...], ...]
    intel_openmp: bool = False

    def commands(self, folder: Path) -> list[list[str]]:
        """What `install` runs."""
        python = str(folder / "bin" / "python")
        return [[sys.executable, "-m", "venv", str(folder)], *([python, "-m", "pip", *step] for step in self.steps)]


def requirements() -> tuple[str, ...]:
    """What `make vllm-env` installs too."""
    lines = (Path(__file__).parents[2] / "requirements-vllm.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment(
            "vllm",
            (
                ("install", *requirements()),
                # the release that vLLM 0.32 asks for; built here, for its own build would fetch a CUDA torch
                ("install", "nanobind==2.9.2", "cmake", "ninja", "wheel"),
                ("install", "--no-deps", "--no-build-isolation", "arctic-inference==0.1.1"),
                ("uninstall", "-y", "torchvision", "torchaudio", "torchcodec"),  # builds for another torch
            ),
            intel_openmp=True,
        ),
        Environment("llamacpp", (("install", "llama-cpp-python==0.3.36"),)),
    )
}
CHOSEN_BY_OTHERS = ("OMP_", "KMP_", "GOMP_", "LD_PRELOAD", "MKL_", "VLLM_", "PYTHON", "VIRTUAL_ENV")


def installed(environment: Environment, folder: Path) -> bool:
    """Whether `install` has ended there with what it would install today."""
    try:
        steps = json.loads((folder / INSTALLED).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(steps == [list(step) for step in environment.steps]) and (folder / "bin" / "python").exists()


def install(environment: Environment, folder: Path, say: Say) -> None:
    """Make the environment, or bring it up to date. Raises SettingError naming the command that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        (folder / INSTALLED).unlink()
    path = f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"  # its cmake, where the machine has none
    for command in environment.commands(folder):
        say(shlex.join(command))
        try:
            subprocess.run(command, check=True, env=os.environ | {"PATH": path}, stdout=sys.stderr)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SettingError(f"{environment.name} was not installed: {error} (its own message is above)") from error
    write_whole(folder / INSTALLED, json.dumps(environment.steps).encode())


def how_to_install(environment: Environment, folder: Path) -> list[str]:
    """The commands to type: one that does it all, or each step of it."""
    return [INSTALL, *(shlex.join(command) for command in environment.commands(folder))]


def variables(environment: Environment, python: Path, cache: Path, threads: int) -> dict[str, str]:
    """The environment variables of its worker: ours, less what tunes threads, and with its caches below `cache`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CHOSEN_BY_OTHERS)}
    caches = {
        "VLLM_CACHE_ROOT": str(cache / "vllm"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "NUMBA_CACHE_DIR": str(cache / "numba"),  # beside the sources, its numba and ours would fight over the files
    }
    return kept | caches | (openmp(python) if environment.intel_openmp else {}) | {"OMP_NUM_THREADS": str(threads)}
