"""Which target model computes a folder's model: the lean forward pass where it can, transformers' own for all others.

On a CPU the lean one runs on kernels of its own, on a GPU on captured graphs. What is chosen is said in `kind`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, GenerationConfig

from decoding.hf_target import HuggingFaceTarget, load_hf_model
from decoding.lean.files import StoredTensors
from decoding.lean.shape import LeanShape, read_shape
from decoding.lean.weights import read_weights
from decoding.target import TargetModel
from indexes.errors import ModelError, SettingError, UnsupportedModelError

AUTO, LEAN, GENERAL = CHOICES = ("auto", "lean", "general")
NUMBER_FORMATS = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.bfloat16,  # of what is not in 8 bits
}


def load_target(folder: Path, device: str, number_format: str, choice: str = AUTO) -> TargetModel:
    """The target model in a Hugging Face folder, on a device ("cpu", "cuda", ...).

    number_format is one of NUMBER_FORMATS; int8 is a matter of the lean pass on a CPU. choice is "auto", "lean"
    (refuse any other) or "general" (transformers' forward pass).
    Raises ModelError for a folder without a model, UnsupportedModelError for one that cannot verify drafts or, with
    "lean" or int8, is not of the Llama family, and SettingError for settings that are unknown.
    """
    for name, value, allowed in (("target", choice, CHOICES), ("number format", number_format, tuple(NUMBER_FORMATS))):
        if value not in allowed:
            raise SettingError(f"unknown {name} {value!r}; choose one of {', '.join(allowed)}")
    config = _configuration(folder)
    if choice != GENERAL:
        try:
            return _lean_target(folder, config, device, number_format)
        except UnsupportedModelError as error:
            if choice == LEAN or number_format == "int8":
                raise UnsupportedModelError(f"{error}; choose another --target or --dtype") from error
    elif number_format == "int8":
        raise SettingError("int8 needs the lean target: leave --target out, or choose another --dtype")
    return HuggingFaceTarget(load_hf_model(folder, device, NUMBER_FORMATS[number_format]))


def takes_kernels(folder: Path) -> bool:
    """Whether a folder's model runs on the CPU's kernels, which are exact in every number format."""
    from decoding.lean.cpu_packing import check_packable

    try:
        check_packable(read_shape(_configuration(folder)))
    except UnsupportedModelError:
        return False
    return True


def _configuration(folder: Path) -> Any:
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"no causal language model could be loaded from {folder}: {error}") from error


def _lean_target(folder: Path, config: Any, device: str, number_format: str) -> TargetModel:
    shape = read_shape(config)
    tensors, dtype = StoredTensors(folder), NUMBER_FORMATS[number_format]
    stop = _stop_tokens(folder, shape)
    if device == "cpu":
        from decoding.lean.cpu_packing import check_packable
        from decoding.lean.cpu_target import CpuLeanTarget

        check_packable(shape)
        if number_format == "float16":
            raise UnsupportedModelError("the CPU's kernels know float32, bfloat16 and int8, not float16")
        return CpuLeanTarget(shape, read_weights(shape, tensors, config, dtype, device), number_format, stop)
    from decoding.lean.torch_target import LeanTarget

    if number_format == "int8":
        raise UnsupportedModelError(f"int8 weights are a matter of the CPU's kernels, not of {device}")
    return LeanTarget(shape, read_weights(shape, tensors, config, dtype, device), stop)


def _stop_tokens(folder: Path, shape: LeanShape) -> frozenset[int]:
    """What ends an answer: the generation configuration's word, if there is one."""
    try:
        eos = GenerationConfig.from_pretrained(folder, local_files_only=True).eos_token_id
    except (OSError, ValueError):
        return shape.stop_tokens
    return frozenset([eos] if isinstance(eos, int) else eos or shape.stop_tokens)
