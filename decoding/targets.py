"""Which target model computes a folder's model: the lean forward pass where it can, transformers' own for all others.

On a CPU the lean one runs on kernels of its own, on a GPU on captured graphs. What is chosen is said in `kind`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, GenerationConfig

from decoding.architecture import check_reads_trees
from decoding.hf_target import HuggingFaceTarget, load_hf_model
from decoding.lean.files import StoredTensors
from decoding.lean.shape import LeanShape, read_shape
from decoding.lean.torch_model import LeanModel
from decoding.lean.torch_target import LeanTarget
from decoding.lean.weights import LeanWeights, read_weights
from decoding.target import TargetModel
from indexes.errors import ModelError, SettingError, UnsupportedModelError

AUTO, LEAN, PYTORCH, GENERAL = CHOICES = ("auto", "lean", "pytorch", "general")
EXACT_ROWS = 32  # of every pass in exact mode on a GPU
NUMBER_FORMATS = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.bfloat16,  # of what is not in 8 bits
}


def load_target(folder: Path, device: str, number_format: str, choice: str = AUTO, exact: bool = False) -> TargetModel:
    """The target model in a Hugging Face folder, on a device ("cpu", "cuda", ...).

    number_format is one of NUMBER_FORMATS; int8 is a matter of the kernels for the CPU. choice is "auto", "lean" (the
    lean pass on kernels of its own, or nothing), "pytorch" (the lean pass in plain PyTorch) or "general" (transformers'
    forward pass). `exact` asks for the same bits whatever is drafted, in 16 bits too.
    Raises ModelError for a folder without a model, UnsupportedModelError for one that cannot verify drafts or cannot be
    computed as asked for, and SettingError for settings that are unknown or do not go together.
    """
    for name, value, allowed in (("target", choice, CHOICES), ("number format", number_format, tuple(NUMBER_FORMATS))):
        if value not in allowed:
            raise SettingError(f"unknown {name} {value!r}; choose one of {', '.join(allowed)}")
    if device.startswith("cpu"):
        device = "cpu"  # it has no numbers
    config = _configuration(folder)
    reason = f"the target {choice} has no such kernels"
    if choice in (AUTO, LEAN):
        try:
            return _on_kernels(folder, config, device, number_format, exact)
        except UnsupportedModelError as error:
            if choice == LEAN:
                raise
            reason = str(error)
    if number_format == "int8" or (exact and number_format != "float32"):
        wanted = "int8 weights" if number_format == "int8" else f"exact mode in {number_format}"
        raise UnsupportedModelError(f"{wanted}: {reason}; choose another --target, or --dtype float32")
    if choice != GENERAL:
        try:
            return _in_pytorch(folder, config, device, number_format)
        except UnsupportedModelError:
            if choice == PYTORCH:
                raise
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
    except Exception as error:  # a damaged config.json raises whatever the check that it fails raises
        raise ModelError(f"no causal language model could be loaded from {folder}: {error}") from error


def _on_kernels(folder: Path, config: Any, device: str, number_format: str, exact: bool) -> TargetModel:
    """The lean pass on kernels of its own. Raises UnsupportedModelError where there are none."""
    shape = read_shape(config)
    stop = _stop_tokens(folder, shape)
    if device == "cpu":
        from decoding.lean.cpu_packing import check_packable
        from decoding.lean.cpu_target import KINDS, CpuLeanTarget

        check_packable(shape)
        if number_format not in KINDS:
            raise UnsupportedModelError(f"the CPU's kernels know {', '.join(KINDS)}, not {number_format}")
        target = CpuLeanTarget(shape, _weights(folder, shape, config, device, number_format), number_format, stop)
        check_reads_trees(target, shape.name)  # which compiles what is compiled, too
        return target
    if not device.startswith("cuda") or number_format == "int8":
        raise UnsupportedModelError(f"there are no kernels for {number_format} on {device}")
    from decoding.lean.cuda_graphs import graph_target, rows_agree

    weights = _weights(folder, shape, config, device, number_format)
    if exact and not rows_agree(LeanModel(shape, weights), EXACT_ROWS):
        raise UnsupportedModelError(f"the matrix products of {device} depend on the place of a row in {number_format}")
    return graph_target(shape, weights, stop, EXACT_ROWS if exact else None)


def _in_pytorch(folder: Path, config: Any, device: str, number_format: str) -> TargetModel:
    """The lean pass in plain PyTorch. Raises UnsupportedModelError for models of another family."""
    shape = read_shape(config)
    return LeanTarget(shape, _weights(folder, shape, config, device, number_format), _stop_tokens(folder, shape))


def _weights(folder: Path, shape: LeanShape, config: Any, device: str, number_format: str) -> LeanWeights:
    return read_weights(shape, StoredTensors(folder), config, NUMBER_FORMATS[number_format], device)


def _stop_tokens(folder: Path, shape: LeanShape) -> frozenset[int]:
    """What ends an answer: the generation configuration's word, if it says token ids."""
    try:
        eos = GenerationConfig.from_pretrained(folder, local_files_only=True).eos_token_id
    except Exception:  # missing, or damaged in any way
        return shape.stop_tokens
    listed = eos if isinstance(eos, list) else [eos]
    sound = all(isinstance(token, int) and not isinstance(token, bool) for token in listed)
    return frozenset(listed) if sound else shape.stop_tokens
