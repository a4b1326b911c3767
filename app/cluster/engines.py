"""Engines on other machines of a cluster, like the one of the command, or refused.

What a worker answers or encodes must be what the command would have: each compares what it has loaded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from app.cluster.machines import Share, machines, shared
from app.cluster.session import RayChoice
from app.commands.command_line import quiet_libraries
from app.setup.settings import Paths, Settings
from indexes.errors import ClusterError

ROOM = 2**30  # bytes: what a process takes beside its models


@dataclass(frozen=True, slots=True)
class Like:
    """What it takes to make an engine like another one. Holds no models, so it can be sent."""

    settings: Settings
    home: Paths
    working_folder: Path

    @classmethod
    def of(cls, engine: Engine) -> Like:
        """What makes engines like this one, on the same kind of device."""
        return cls(engine.settings.model_copy(update={"device": engine.device}), engine.paths, Path.cwd())

    def engine(self, facts: Callable[[Engine], Mapping[str, Any]], expected: Mapping[str, Any]) -> Engine:
        """One on this machine. Raises ClusterError if the facts of it are others than expected."""
        quiet_libraries()
        with contextlib.suppress(OSError):  # not there: then only what is named by a relative path is not found
            os.chdir(self.working_folder)
        made = Engine(self.settings, home=self.home)
        here = facts(made)
        differing = [
            f"{name} is {here.get(name)!r}, not {value!r}"
            for name, value in expected.items()
            if here.get(name) != value
        ]
        if differing:
            raise ClusterError(f"a machine of the cluster is not like the one of the command: {'; '.join(differing)}")
        return made


def share_for(engine: Engine, choice: RayChoice, models: Sequence[Path]) -> Share:
    """How the cluster is divided among actors that load these models, whose weights may take twice their files."""
    files = sum(file.stat().st_size for folder in models for file in folder.rglob("*") if file.is_file())
    return shared(machines(), choice.actors, engine.device.startswith("cuda"), ROOM + 2 * files)
