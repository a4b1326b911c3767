"""Fixtures that several folders of tests share."""

from __future__ import annotations

import json
import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before anything imports triton: the GPU's kernels run in its interpreter

from app.answering.engine import Engine
from app.setup.settings import Paths, Settings, paths

# A suite that a shell put in the background ignores Ctrl-C, and so would the programs whose Ctrl-C is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """The laptop profile: data in a temporary folder, models from the cache that `python app.py setup` fills."""
    return Engine(Settings(), home=Paths(tmp_path_factory.mktemp("data"), paths().cache))


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--full``: tests of damage and kills try all that they can, not a share that takes seconds."""
    parser.addoption("--full", action="store_true", help="try every kill and 5,000 mutations (minutes)")
    parser.addoption("--tried", type=Path, help="write there, as JSON, how much of that was tried")


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist nobody asks
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Modules stay whole, for their fixtures are dear; so do the packages that share an application, or a cluster."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.split("::")[0]
            shared = (
                package for package in ("tests/app/page", "tests/app/cluster") if module.startswith(f"{package}/")
            )
            return next(shared, module)

    return ByModule(config, log)


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether to try everything."""
    return bool(pytestconfig.getoption("full"))


@pytest.fixture(scope="session")
def tried(pytestconfig: pytest.Config) -> Iterator[list[dict[str, object]]]:
    """A line for each sweep that a test went through; written to the file of ``--tried``."""
    lines: list[dict[str, object]] = []
    yield lines
    if path := pytestconfig.getoption("--tried"):
        conditions = {"machine": platform.platform(), "python": platform.python_version(), "seed": 0}
        path.write_text(json.dumps({"conditions": conditions, "sweeps": lines}, indent=1) + "\n", "utf-8")
