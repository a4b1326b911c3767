"""Keeps measured verify times: measured once per model, number format and machine, then read from the cache folder.

Whatever a file holds that is not a measurement of exactly this model on exactly this machine is measured again, and so
is a measurement that a busy machine has disturbed, once passes turn out to be much faster.
How times are measured is the concern of `decoding.verify_costs`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import platform
from pathlib import Path

import torch
import transformers

from app.setup.models import Say
from decoding.target import TargetModel
from decoding.verify_costs import VerifyCosts, measure_costs
from indexes.errors import SettingError
from indexes.files import write_whole

logger = logging.getLogger(__name__)

FORMAT = 1
Key = dict[str, str | int]


def costs_key(model: str, folder: Path, target: TargetModel, device: str, dtype: str, max_nodes: int) -> Key:
    """All that verify times depend on and that can change from one start to the next."""
    return {
        "format": FORMAT,
        "model": model,
        "files": files_digest(folder),
        "target": type(target).__name__,
        "device": _device_name(device),
        "dtype": dtype,
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
        "transformers": str(transformers.__version__),
        "max_nodes": max_nodes,
    }


def load_costs(folder: Path, key: Key, target: TargetModel, say: Say) -> VerifyCosts:
    """The verify times for `key` from `folder`, measured now and kept there if they are not.

    Measuring takes some seconds and drops what the target's cache held.
    """
    path = _path(folder, key)
    if known := _read(path, key):
        return known
    say("Measuring verify times (once for this model on this machine)")
    costs = measure_costs(target, int(key["max_nodes"]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = {"key": key, "nodes": costs.nodes, "seconds": costs.seconds}
        write_whole(path, json.dumps(kept, indent=1).encode("utf-8"))
    except OSError as error:
        logger.warning("verify times cannot be kept and will be measured again: %s", error)
    return costs


def forget_costs(folder: Path, key: Key) -> None:
    """Have them measured again when they are next needed."""
    with contextlib.suppress(OSError):  # then they are forgotten another time
        _path(folder, key).unlink()


def _path(folder: Path, key: Key) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return folder / f"{digest[:16]}.json"


def _read(path: Path, key: Key) -> VerifyCosts | None:
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept["key"] != key:
            return None
        return VerifyCosts(tuple(map(int, kept["nodes"])), tuple(map(float, kept["seconds"])))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, SettingError) as error:
        logger.info("%s is measured again: %s", path.name, error)
        return None


def files_digest(folder: Path) -> str:
    """Tells one model's files from another's by the configuration and all sizes, without reading the weights."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.is_file():
            digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    if (configuration := folder / "config.json").is_file():
        digest.update(configuration.read_bytes())
    return digest.hexdigest()


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return f"{device} {platform.machine()} {torch.backends.cpu.get_cpu_capability()} {_processor()}".strip()


def _processor() -> str:
    """The processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
