"""How time and memory grow with the context, the corpus and the references: measured, fitted, and put into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import AutoConfig

from app.answering.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.growth import fit_growth
from benchmarks.scaling_index import drafting_lines, index_lines
from benchmarks.scaling_target import bytes_per_token, measure, memory_lines, step_lines, within_limit
from decoding.drafters import make_drafter
from decoding.lean.shape import read_shape
from retrieval.indexing import Progress
from retrieval.python_docs import python_docs

PARTS = ("steps", "index", "drafting")
DRAFTERS = ("blend", "trie", "llma", "suffix")  # those that lay out references for each question
NUMBER_BYTES = {"float32": 4}  # of a key's number; 2 in all other formats


@dataclass(frozen=True, slots=True)
class Setting:
    """What to measure: parts of PARTS, sizes, and how often."""

    parts: Sequence[str]
    contexts: Sequence[int]
    rows: Sequence[int]
    chunks: Sequence[int]
    reference_tokens: Sequence[int]
    rounds: int


def run(engine: Engine, setting: Setting, progress: Progress) -> dict[str, Any]:
    """Tables "steps", "memory", "index", "drafting", as far as they are among the parts, and "growth" of them all.

    Raises UnsupportedModelError for a target outside the Llama family, whose cache the formula does not describe.
    """
    results: dict[str, Any] = {"conditions": _conditions(engine, setting)}
    if "steps" in setting.parts:
        results |= _target(engine, setting, progress)
    if "index" in setting.parts:
        results["index"] = index_lines(sorted(setting.chunks), engine.index_settings(), engine.encoder, progress)
    if "drafting" in setting.parts:
        results["drafting"] = _drafting(engine, setting, progress)
    results["growth"] = growth_lines(results)
    return results


def _conditions(engine: Engine, setting: Setting) -> dict[str, Any]:
    found = conditions(device=engine.device, parts=", ".join(setting.parts), rounds=setting.rounds)
    if "steps" in setting.parts:
        found |= {"model": engine.profile.model, "dtype": engine.dtype_name, "target": engine.target.kind}
    if "index" in setting.parts:
        found |= {"encoder": engine.profile.encoder, "token_vectors": engine.index_settings().token_vectors}
    return found


def _target(engine: Engine, setting: Setting, progress: Progress) -> dict[str, Any]:
    target = engine.target
    shape = read_shape(AutoConfig.from_pretrained(engine.model_folder, local_files_only=True))
    contexts = within_limit(setting.contexts, setting.rows, target.context_limit)
    found = measure(target, contexts, sorted(setting.rows), setting.rounds, engine.device == "cpu", progress)
    each = bytes_per_token(shape, NUMBER_BYTES.get(engine.dtype_name, 2))
    return {"steps": step_lines(found), "memory": memory_lines(found, each)}


def _drafting(engine: Engine, setting: Setting, progress: Progress) -> list[dict[str, Any]]:
    tokens: list[int] = []
    for document in python_docs():
        tokens += engine.tokenizer(document.text, add_special_tokens=False).input_ids
        if len(tokens) >= max(setting.reference_tokens):
            break
    drafters = {name: make_drafter(name, engine.resources(name)) for name in DRAFTERS}
    return drafting_lines(sorted(setting.reference_tokens), tokens, drafters, setting.rounds, progress)


# Table, what its sizes are called, the columns' beginning, and how each is expected to grow with x.
LINE, STRAIGHT = "a + bx", "bx"
SERIES = (
    ("steps", "context", "ms_", LINE),
    ("steps", "context", "prefill_s", "x to x^2"),
    ("memory", "context", "used_mb", STRAIGHT),
    ("memory", "context", "allocated_mb", LINE),
    ("memory", "context", "scratch_mb", LINE),
    ("memory", "context", "process_mb", LINE),
    ("index", "chunks", "build_s", STRAIGHT),
    ("index", "chunks", "encode_s", STRAIGHT),
    ("index", "chunks", "cpu_s", STRAIGHT),
    ("index", "chunks", "other_s", LINE),
    ("index", "chunks", "mb_on_disk", STRAIGHT),
    ("drafting", "reference_tokens", "ms_", LINE),
)


def growth_lines(results: dict[str, Any]) -> list[dict[str, Any]]:
    """What was fitted to every column of the tables that has two sizes at least: as in `benchmarks.growth`."""
    lines = []
    for table, size, column, expected in SERIES:
        rows: list[dict[str, Any]] = results.get(table, [])
        for name in [name for name in rows[0] if name.startswith(column)] if rows else []:
            sizes, amounts = [row[size] for row in rows], [row[name] for row in rows]
            if len(set(sizes)) < 2 or min(amounts) <= 0:
                continue
            found = fit_growth(sizes, amounts)
            lines.append(
                {
                    "table": table,
                    "series": name,
                    "expected": expected,
                    "exponent": found.exponent,
                    "slope": round(found.slope, 3),
                    "base": _short(found.base),
                    "per_unit": _short(found.per_unit),
                    "misfit": round(found.misfit, 4),
                }
            )
    return lines


def _short(value: float) -> float:
    return float(f"{value:.4g}")
