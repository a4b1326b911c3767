"""Is every drafted answer the plain one, token for token? On real prompts with the real model, for several targets.

A target that is exact gives identical answers in any number format. For one that is not, every difference is listed
with the gap between its two largest logits where the answers part, and its speed says what exactness costs.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from app.answering.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.data import read_prompts
from benchmarks.decode import Ours, answer_ways, make_request
from benchmarks.hostile import HOSTILE, HostileDrafter
from benchmarks.replies import Reply
from decoding.loop import DecodeRequest
from retrieval.indexing import Progress

PLAIN = "plain"


def run(
    engines: Mapping[str, Engine],
    data: Sequence[Path],
    data_format: str | None,
    drafters: Sequence[str],
    limit: int | None,
    max_new_tokens: int,
    progress: Progress,
) -> dict[str, Any]:
    """Answer every question plainly and with every drafter on every target; `engines` are named by their targets.

    `limit` is for each file of `data`.
    """
    examples = [example for path in data for example in read_prompts(path, data_format, limit)]
    lines: list[dict[str, Any]] = []
    answered = 0
    for name, engine in engines.items():
        replies: dict[str, list[Reply]] = {drafter: [] for drafter in (PLAIN, *drafters)}
        differences: dict[str, list[dict[str, Any]]] = {drafter: [] for drafter in drafters}
        ways = answer_ways(engine, [PLAIN, *(drafter for drafter in drafters if drafter != HOSTILE)])
        for example in examples:
            progress("Questions", answered, len(examples) * len(engines))
            answered += 1
            request = make_request(engine, example, max_new_tokens)
            replies[PLAIN].append(plain := ways[PLAIN](request))
            for drafter in drafters:
                way = _hostile(engine, plain) if drafter == HOSTILE else ways[drafter]
                replies[drafter].append(reply := way(request))
                if reply.tokens != plain.tokens:
                    differences[drafter].append({"question": example.id} | _parting(engine, request, plain, reply))
        lines += [
            _line(name, drafter, replies[drafter], replies[PLAIN], differences.get(drafter, [])) for drafter in replies
        ]
    progress("Questions", answered, answered)
    first = next(iter(engines.values()))
    chosen = conditions(
        data=", ".join(path.name for path in data),
        questions=len(examples),
        max_new_tokens=max_new_tokens,
        max_nodes=first.max_nodes,
        model=first.profile.model,
        device=first.device,
        dtype=", ".join(dict.fromkeys(engine.dtype_name for engine in engines.values())),
        targets="; ".join(f"{name}: {engine.target.kind}" for name, engine in engines.items()),
    )
    return {"conditions": chosen, "drafters": lines}


def _hostile(engine: Engine, plain: Reply) -> Ours:
    drafter = HostileDrafter(plain.tokens, engine.target.vocabulary)
    return Ours(engine.target, drafter, None, engine.max_nodes)


def _parting(engine: Engine, request: DecodeRequest, plain: Reply, reply: Reply) -> dict[str, Any]:
    """Where two answers part, and how far apart the target's two largest logits are there."""
    pairs = zip(plain.tokens, reply.tokens, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(plain.tokens), len(reply.tokens)))
    prompt = replace(request.draft, prompt=(*request.draft.prompt, *plain.tokens[:at])).prompt
    top = torch.topk(engine.target.prefill(prompt).float(), 2).values.tolist()
    return {"first_difference_at_token": at, "logit_gap": round(top[0] - top[1], 4)}


def _line(
    target: str, drafter: str, replies: Sequence[Reply], plain: Sequence[Reply], differences: list[dict[str, Any]]
) -> dict[str, Any]:
    same = len(replies) - len(differences)
    gaps = [difference["logit_gap"] for difference in differences]
    tokens = sum(len(reply.tokens) - reply.first for reply in replies)
    return {
        "target": target,
        "drafter": drafter,
        "questions": len(replies),
        "identical": same,
        "share": round(same / len(replies), 4),
        "divergences_per_1000_tokens": round(1000 * len(differences) / max(1, _agreed(replies, differences)), 3),
        "logit_gap_median": round(statistics.median(gaps), 4) if gaps else None,
        "logit_gap_max": max(gaps, default=None),
        "tokens_per_s": round(tokens / max(1e-9, sum(reply.decode_s for reply in replies)), 2),
        "accept_length": round(tokens / max(1, sum(reply.passes for reply in replies)), 3),
        "differences": differences,
    }


def _agreed(replies: Sequence[Reply], differences: Sequence[Mapping[str, Any]]) -> int:
    """Tokens until answers part: what comes after a difference is another text."""
    parted: int = sum(difference["first_difference_at_token"] + 1 for difference in differences)
    return parted + sum(len(reply.tokens) for reply in replies) * (len(replies) - len(differences)) // len(replies)
