"""Is every drafted answer the plain one, token for token? On real prompts with the real model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.data import read_prompts
from benchmarks.decode import answer_ways, make_request
from retrieval.indexing import Progress


def run(
    engine: Engine,
    data: Path,
    data_format: str | None,
    drafters: Sequence[str],
    limit: int | None,
    max_new_tokens: int,
    progress: Progress,
) -> dict[str, Any]:
    """Answer every question plainly and with every drafter; list each difference with its first position."""
    examples = read_prompts(data, data_format, limit)
    lines: dict[str, dict[str, Any]] = {
        name: {"drafter": name, "identical": 0, "questions": len(examples), "differences": []} for name in drafters
    }
    answerers = answer_ways(engine, ["plain", *drafters])
    for done, example in enumerate(examples):
        progress("Questions", done, len(examples))
        request = make_request(engine, example, max_new_tokens)
        plain = answerers["plain"](request).tokens
        for name in drafters:
            tokens = answerers[name](request).tokens
            lines[name]["identical"] += tokens == plain
            if tokens != plain:
                at = next((i for i, (a, b) in enumerate(zip(tokens, plain, strict=False)) if a != b), len(plain))
                lines[name]["differences"].append({"question": example.id, "first_difference_at_token": at})
    progress("Questions", len(examples), len(examples))
    chosen = conditions(
        data=data.name,
        max_new_tokens=max_new_tokens,
        max_nodes=engine.max_nodes,
        model=engine.profile.model,
        device=engine.device,
        dtype=engine.dtype_name,
        target=engine.target.kind,
    )
    return {"conditions": chosen, "drafters": list(lines.values())}
