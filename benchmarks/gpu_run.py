"""The gpu benchmark: step times of a well-known shape with random weights, and recorded answers replayed on it.

Our target writes them by forced decoding (`benchmarks.gpu_replay`). transformers runs the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.conditions import conditions
from benchmarks.gpu_replay import Forced, counted, fitting, forced_on
from benchmarks.gpu_shapes import shape_config
from benchmarks.gpu_steps import LOOKED_UP, TransformersSteps, copy_bytes_per_s, plain_step_bytes, step_times
from benchmarks.recorded import Recorded, read_recorded, text_encoder
from decoding.blend.token_table import TokenTable, read_table
from decoding.drafters import Resources, make_drafter
from decoding.lean.shape import LeanShape, read_shape
from decoding.lean.torch_model import LeanModel
from decoding.lean.torch_target import LeanTarget
from decoding.lean.weights import LeanWeights, random_weights
from indexes.errors import SettingError

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Setting:
    """What to measure.

    nodes     fixed budgets, the first one 0: the plain step that all others are compared with
    contexts  tokens before the timed steps
    limit     answers of each file; None: all

    Raises SettingError for a dtype that is not known and for nodes that do not begin with 0.
    """

    shape: str
    device: str | None
    dtype: str
    nodes: Sequence[int]
    contexts: Sequence[int]
    limit: int | None
    exact: bool

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise SettingError(f"dtype is {self.dtype!r}; choose from {', '.join(DTYPES)}")
        if self.nodes[0] != 0:
            raise SettingError(f"nodes begin with {self.nodes[0]}; they must begin with 0, the plain step")

    def on(self) -> torch.device:
        """The device: a GPU where there is one, if none was chosen."""
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def format(self) -> torch.dtype:
        """The number format."""
        return DTYPES[self.dtype]


def make_target(
    shape: LeanShape, weights: LeanWeights, device: torch.device, exact_rows: int | None
) -> tuple[LeanTarget, dict[str, Any]]:
    """Captured graphs on a GPU, plain PyTorch elsewhere; and what is to be said of it."""
    if device.type != "cuda":
        if exact_rows:
            raise SettingError("--exact needs a GPU: plain PyTorch has no attention that is invariant to the rows")
        return LeanTarget(shape, weights), {"target": "plain PyTorch"}
    from decoding.lean.cuda_graphs import graph_target, rows_agree

    said: dict[str, Any] = {"target": "captured graphs"}
    if exact_rows:
        agree = rows_agree(LeanModel(shape, weights), exact_rows)
        said |= {"exact_rows": exact_rows, "products_agree_whatever_the_rows": agree}
    return graph_target(shape, weights, exact_rows=exact_rows), said


def run(tokenizer: Any, data: Sequence[Path], setting: Setting, say: Say) -> dict[str, Any]:
    """Steps by rows and context, answers per file, and transformers on the same shape.

    Raises SettingError for unknown shapes, data in other forms, ids beyond the vocabulary, and exact without a GPU.
    """
    device, dtype = setting.on(), setting.format()
    config = shape_config(setting.shape)
    shape = read_shape(config)
    encode = text_encoder(tokenizer)
    files = {
        path.name: fitting(read_recorded(path, encode), shape.vocabulary, shape.context_limit, setting.limit)
        for path in data
    }
    say("making weights")
    weights = random_weights(shape, config, dtype, device)
    target, said = make_target(shape, weights, device, max(setting.nodes) + 1 if setting.exact else None)
    copied = copy_bytes_per_s(device)
    steps = []
    for context in setting.contexts:
        say(f"steps behind {context} tokens")
        steps += step_times(target, device, context, setting.nodes)
    read = plain_step_bytes(shape, weights, setting.contexts[0]) / (steps[0]["step_ms"] / 1000)
    said |= {
        "copy_gb_per_s": round(copied / 1e9, 1),
        "plain_step_gb_per_s": round(read / 1e9, 1),
        "plain_step_share_of_copy": round(read / copied, 3),
    }
    table = read_table(tokenizer, shape.vocabulary)
    answers = [
        line for name, found in files.items() for line in _answers(target, name, found, table, setting.nodes, say)
    ]
    del target, weights  # transformers' model takes as much memory again
    answers += _transformers(TransformersSteps(config, dtype, device), files, say)
    chosen = conditions(shape=setting.shape, dtype=setting.dtype, device=str(device), **said)
    return {"conditions": chosen, "steps": steps, "answers": answers}


def _answers(
    target: LeanTarget, name: str, examples: Sequence[Recorded], table: TokenTable, nodes: Sequence[int], say: Say
) -> list[dict[str, Any]]:
    """A line per number of nodes. Blend is as shipped: its scorer may have seen these files; `simulate` cross-fits."""
    lines: list[dict[str, Any]] = []
    for count in nodes:
        say(f"{name}: {f'blend, {count} nodes' if count else 'plain'}")
        drafter = make_drafter("blend", Resources(table=table)) if count else None
        forced_on(target, drafter, examples[:1], count, lambda: None)  # compiles and captures
        if drafter:
            drafter.reset()
        sums = forced_on(target, drafter, examples, count, lambda: None)
        rate = sums.tokens / sums.decode_s
        plain = lines[0]["tokens_per_s"] if lines else rate
        lines.append(_line(name, f"blend@{count}" if count else "plain", sums, rate, plain))
    return lines


def _line(name: str, method: str, sums: Forced, rate: float, plain: float) -> dict[str, Any]:
    return {
        "data": name,
        "method": method,
        "tokens_per_s": round(rate, 2),
        "against_plain": round(rate / plain, 3),
        "accept_length": round(sums.tokens / sums.steps, 3),
        "nodes_per_step": round(sums.nodes / sums.steps, 1),
        "verify_ms": round(1000 * sums.verify_s / sums.steps, 4),
        "draft_ms": round(1000 * sums.draft_s / sums.steps, 4),
    }


def _transformers(peer: TransformersSteps, files: dict[str, list[Recorded]], say: Say) -> list[dict[str, Any]]:
    """generate as it runs, and prompt lookup reckoned: its step times with the accept length of a simulation.

    It cannot be forced to a recorded answer, so its bookkeeping is left out, in its favour.
    """
    lines = []
    for name, examples in files.items():
        say(f"{name}: transformers")
        context = sum(len(one.request.prompt) + len(one.answer) // 2 for one in examples) // len(examples)
        plain_ms, drafted_ms = peer.generate_ms(context), peer.forward_ms(context)
        sums = counted(make_drafter("prompt-lookup"), examples, LOOKED_UP)
        sums.draft_s = 0.0
        sums.verify_s = (sums.empty_steps * plain_ms + (sums.steps - sums.empty_steps) * drafted_ms) / 1000
        plain = Forced(tokens=sums.tokens, steps=sums.tokens, verify_s=sums.tokens * plain_ms / 1000)
        rate = plain.tokens / plain.verify_s
        lines.append(_line(name, "hf-generate", plain, rate, rate))
        lines.append(_line(name, "hf-prompt-lookup, reckoned", sums, sums.tokens / sums.verify_s, rate))
    return lines
