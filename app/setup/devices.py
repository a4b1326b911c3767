"""Which device and number format to compute with: chosen, said, and settable."""

from __future__ import annotations

import torch

from decoding.lean.cpu_tiles import multiplies_bf16
from indexes.errors import SettingError


def choose_device(wanted: str) -> str:
    """`wanted`, or for "auto" the first of cuda, mps, cpu that is there. Raises SettingError."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(device for device, there in available.items() if there)
    kind = wanted.split(":")[0]
    if kind not in available:
        raise SettingError(f"unknown device {wanted!r}; choose auto, cuda, mps or cpu")
    if not available[kind]:
        there = ", ".join(device for device, is_there in available.items() if is_there)
        raise SettingError(f"device {wanted!r} is not available on this machine; available: {there}")
    return wanted


def choose_dtype(wanted: str, device: str, exact: bool) -> str:
    """The number format: `wanted`, or for "auto" 16 bits where that changes no answer. Raises SettingError.

    On a GPU that is bfloat16. On a CPU it is bfloat16 if the kernels are `exact` in it and the processor multiplies it;
    elsewhere a pass over one token and a pass over a tree differ in the last bits, and greedy answers drift apart, so
    it is float32.
    """
    if wanted != "auto":
        from decoding.targets import NUMBER_FORMATS  # imports transformers' models: half of what a command starts with

        if wanted not in NUMBER_FORMATS:
            raise SettingError(f"unknown dtype {wanted!r}; choose auto, {', '.join(NUMBER_FORMATS)}")
        return wanted
    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if device == "cpu" and exact and multiplies_bf16() else "float32"


def default_max_nodes(device: str, adaptive: bool) -> int:
    """The most draft nodes in one pass. An adaptive budget decides below it, so it may be generous; a fixed one has to
    fit: on a CPU every row costs, on a GPU the weights' reading hides more rows."""
    kind = device.split(":")[0]
    return {"cuda": 64}.get(kind, 32) if adaptive else {"cuda": 32, "mps": 16}.get(kind, 8)
