"""What a figure was measured under: printed with every table, for it means nothing without."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

import torch


def conditions(**more: Any) -> dict[str, Any]:
    """The machine, the libraries, and whatever else the benchmark chose."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {_processor()}",
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        **more,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor()
