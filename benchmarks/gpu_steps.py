"""Times of verify steps by themselves: ours by rows and context, and those of transformers on the same shape.

Every step ends with the one read that decoding needs, so that it is complete. Times are medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache

from decoding.choices import choose
from decoding.lean.shape import LeanShape
from decoding.lean.torch_target import LeanTarget
from decoding.lean.weights import LeanWeights
from decoding.tree import EMPTY, chain

ROUNDS, WARM_UP = 20, 3
COPIED_BYTES = 1 << 30
COPIED_BYTES_CPU = 1 << 26
LOOKED_UP = 10  # tokens that transformers' prompt lookup drafts at most


def wait(device: torch.device) -> None:
    """Until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(call: Callable[[], object], device: torch.device, rounds: int = ROUNDS) -> float:
    """Median seconds of a call and of all that it makes the device do."""
    times = []
    for _ in range(WARM_UP + rounds):
        wait(device)
        began = time.perf_counter()
        call()
        wait(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP:])


def copy_bytes_per_s(device: torch.device) -> float:
    """Bytes read plus bytes written per second by a copy within the device's memory."""
    size = COPIED_BYTES if device.type == "cuda" else COPIED_BYTES_CPU
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / timed(lambda: target.copy_(source), device)


def plain_step_bytes(shape: LeanShape, weights: LeanWeights, context: int) -> int:
    """Bytes that a plain step must read: every weight but the embedding's other rows, and all keys and values."""
    read = [weights.norm, weights.head]
    for layer in weights.layers:
        read += [part for name in layer.__slots__ if (part := getattr(layer, name)) is not None]
    cached = 2 * shape.layers * shape.kv_width * context * weights.norm.element_size()
    return sum(part.numel() * part.element_size() for part in read) + cached


def step_times(target: LeanTarget, device: torch.device, context: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """A line per number of nodes, behind `context` tokens: milliseconds of the step, and the host's part of them.

    host_ms is until the step is launched and the host free again; on the CPU it is the step itself.
    """
    tokens = [7 * at % target.vocabulary for at in range(context + max(sizes))]
    target.prefill(tokens[:context])
    lines: list[dict[str, Any]] = []
    for nodes in sizes:
        drafted = chain(tokens[context : context + nodes]) if nodes else EMPTY
        whole, host = [], []
        for _ in range(WARM_UP + ROUNDS):
            wait(device)
            began = time.perf_counter()
            logits = target.forward(tokens[0], drafted)
            launched = time.perf_counter()
            choose(logits, drafted, tokens[:1])
            whole.append(time.perf_counter() - began)
            host.append(launched - began)
        step, launch = (1000 * statistics.median(times[WARM_UP:]) for times in (whole, host))
        plain = lines[0]["step_ms"] if lines else step
        lines.append(
            {"context": context, "nodes": nodes, "step_ms": _ms(step), "host_ms": _ms(launch),
             "against_first": round(step / plain, 3)}
        )  # fmt: skip
    target.truncate(0)
    return lines


def _ms(value: float) -> float:
    return round(value, 4)


class TransformersSteps:
    """The same shape in transformers, with random weights of its own: what its decoding costs per pass."""

    def __init__(self, config: Any, dtype: torch.dtype, device: torch.device) -> None:
        with torch.device(device):
            self._model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
        self._device = device
        self._vocabulary = config.vocab_size

    @torch.inference_mode()
    def generate_ms(self, context: int, tokens: int = 32) -> float:
        """Milliseconds per token of `generate`, its prefill taken off."""
        prompt = torch.arange(context, device=self._device)[None] * 7 % self._vocabulary
        seen = torch.ones_like(prompt)

        def generate(count: int) -> Callable[[], object]:
            return lambda: self._model.generate(
                prompt, attention_mask=seen, do_sample=False, max_new_tokens=count, min_new_tokens=count, pad_token_id=0
            )

        short, long = (timed(generate(count), self._device, 3) for count in (1, 1 + tokens))
        return _ms(1000 * (long - short) / tokens)

    @torch.inference_mode()
    def forward_ms(self, context: int, rows: int = LOOKED_UP + 1) -> float:
        """Milliseconds of one forward pass over `rows` tokens behind `context`, the choice read, the cache cut back.

        What prompt lookup does besides in each step is left out, in its favour.
        """
        cache = DynamicCache(config=self._model.config)
        prompt = torch.arange(context, device=self._device)[None] * 7 % self._vocabulary
        self._model(prompt, past_key_values=cache, logits_to_keep=1)
        drafted = prompt[:, :rows]

        def step() -> None:
            self._model(drafted, past_key_values=cache).logits.argmax(-1).tolist()
            cache.crop(-rows)

        return _ms(1000 * timed(step, self._device))
