"""What the context costs the target model: times of passes and of the prompt, and memory of the cache.

Sizes take turns, and the fastest of all rounds counts: what else the machine does only adds, and hits all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.resident import resident_bytes
from decoding.cache_memory import CacheMemory, TellsMemory
from decoding.lean.shape import LeanShape
from decoding.target import TargetModel
from decoding.tree import chain
from indexes.errors import SettingError
from retrieval.indexing import Progress

PASSES = 5  # of every number of rows, in turns, at every context in every round


@dataclass(slots=True)
class Measured:
    """What one context cost: fastest seconds of the prompt and of a pass by its rows; memory, and that of the process.

    resident_bytes is None where it says nothing: another device's memory, or a system that does not tell.
    """

    prefill_s: float
    step_s: dict[int, float]
    memory: CacheMemory | None = None
    resident_bytes: int | None = None


def bytes_per_token(shape: LeanShape, number_bytes: int) -> int:
    """The formula: keys and values of every layer and key head."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * number_bytes


def within_limit(contexts: Sequence[int], rows: Sequence[int], limit: int) -> list[int]:
    """The contexts in ascending order, those too long cut to what leaves room for the largest pass.

    Raises SettingError for passes that are longer than half of the model's context.
    """
    most = limit - max(rows)
    if max(rows) > limit // 2:
        raise SettingError(f"rows is {max(rows)}; this model's context of {limit} tokens allows {limit // 2}")
    return sorted({min(context, most) for context in contexts})


def measure(
    target: TargetModel, contexts: Sequence[int], rows: Sequence[int], rounds: int, on_cpu: bool, progress: Progress
) -> dict[int, Measured]:
    """By context (ascending), after a round over the shortest one that does not count."""
    tokens = [7 * at % target.vocabulary for at in range(max(contexts))]
    found = {context: Measured(float("inf"), dict.fromkeys(rows, float("inf"))) for context in contexts}
    _round(target, tokens[: contexts[0]], Measured(0.0, dict.fromkeys(rows, 0.0)), 1)
    for done in range(rounds):
        for place, context in enumerate(contexts):
            progress("Timing passes", done * len(contexts) + place, rounds * len(contexts))
            _round(target, tokens[:context], found[context], PASSES)
            if done == 0:  # the cache has never been longer
                found[context].memory = target.cache_memory if isinstance(target, TellsMemory) else None
                found[context].resident_bytes = _resident() if on_cpu else None
    progress("Timing passes", rounds * len(contexts), rounds * len(contexts))
    target.truncate(0)
    return found


def _round(target: TargetModel, tokens: Sequence[int], found: Measured, passes: int) -> None:
    """Read the prompt, then chains of all sizes in turns."""
    began = time.perf_counter()
    target.prefill(tokens).argmax(dim=-1).tolist()  # it is complete when it has been looked at
    found.prefill_s = min(found.prefill_s, time.perf_counter() - began)
    for _ in range(passes):
        for rows, fastest in found.step_s.items():
            tree = chain(tokens[: rows - 1])
            began = time.perf_counter()
            target.forward(tokens[0], tree).argmax(dim=-1).tolist()
            target.keep(())
            found.step_s[rows] = min(fastest, time.perf_counter() - began)
            target.truncate(len(tokens))


def _resident() -> int | None:
    try:
        return resident_bytes()
    except OSError:
        return None


def step_lines(found: dict[int, Measured]) -> list[dict[str, Any]]:
    """The table of times."""
    return [
        {"context": context, "prefill_s": round(one.prefill_s, 4)}
        | {f"ms_{rows}_rows": round(1000 * seconds, 3) for rows, seconds in one.step_s.items()}
        for context, one in found.items()
    ]


def memory_lines(found: dict[int, Measured], each: int) -> list[dict[str, Any]]:
    """The table of memory, in millions of bytes, against the formula's `each` bytes per token."""
    lines = []
    for context, one in found.items():
        if one.memory is None:
            continue
        formula, memory = each * context, one.memory
        line = {
            "context": context,
            "formula_mb": round(formula / 10**6, 3),
            "used_mb": round(memory.used_bytes / 10**6, 3),
            "used_ratio": round(memory.used_bytes / formula, 4),
            "allocated_mb": round(memory.allocated_bytes / 10**6, 3),
            "allocated_ratio": round(memory.allocated_bytes / formula, 4),
            "unused_slots": (memory.allocated_bytes - memory.used_bytes) // each,
            "scratch_mb": round(memory.scratch_bytes / 10**6, 3),
        }
        if one.resident_bytes is not None:
            line["process_mb"] = round(one.resident_bytes / 10**6, 3)
        lines.append(line)
    return lines
