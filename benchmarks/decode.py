"""Speed of every way to write the same answers, interleaved per question in one process."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from app.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.data import PromptExample, read_prompts
from benchmarks.replies import Answerer, Reply, load_peer, our_reply, transformers_reply
from decoding.drafter import DraftRequest, Reference
from decoding.drafters import DRAFTERS
from decoding.loop import DecodeRequest
from indexes.errors import SettingError
from retrieval.indexing import Progress

TRANSFORMERS: dict[str, dict[str, Any]] = {"hf-generate": {}, "hf-prompt-lookup": {"prompt_lookup_num_tokens": 10}}
METHODS = (*DRAFTERS, *TRANSFORMERS)


def make_request(engine: Engine, example: PromptExample, max_new_tokens: int) -> DecodeRequest:
    """The example as one user message, its references tokenised alone."""
    writer = engine.writer
    text = engine.tokenizer.apply_chat_template(
        [{"role": "user", "content": writer.harmless(example.prompt)}], tokenize=False, add_generation_prompt=True
    )
    prompt = tuple(engine.tokenizer(text, add_special_tokens=False).input_ids)
    references = tuple(Reference(writer.encode(reference)) for reference in example.references)
    return DecodeRequest(DraftRequest(prompt, references), max_new_tokens, engine.stop_tokens, engine.max_nodes)


def _answerers(engine: Engine, methods: Sequence[str]) -> dict[str, Answerer]:
    if unknown := [method for method in methods if method not in METHODS]:
        raise SettingError(f"unknown method {', '.join(unknown)}; choose from {', '.join(METHODS)}")
    answerers: dict[str, Answerer] = {}
    for method in methods:
        if method in TRANSFORMERS:
            answerers[method] = partial(transformers_reply, load_peer(engine), **TRANSFORMERS[method])
        else:
            answerers[method] = partial(our_reply, engine.target, method)
    return answerers


def run(
    engine: Engine,
    data: Path,
    data_format: str | None,
    methods: Sequence[str],
    limit: int | None,
    skip: int,
    max_new_tokens: int,
    progress: Progress,
) -> dict[str, Any]:
    """Time every method on every question, in turn, after one short warm-up of each."""
    examples = read_prompts(data, data_format, None if limit is None else skip + limit)[skip:]
    answerers = _answerers(engine, list(dict.fromkeys(["plain", *methods])))
    requests = [make_request(engine, example, max_new_tokens) for example in examples]
    for answerer in answerers.values():
        answerer(make_request(engine, examples[0], 8))
    replies: dict[str, list[Reply]] = {method: [] for method in answerers}
    for done, request in enumerate(requests):
        progress("Questions", done, len(requests))
        order = list(answerers)
        for method in order[done % len(order) :] + order[: done % len(order)]:  # nobody always runs first
            replies[method].append(answerers[method](request))
    progress("Questions", len(requests), len(requests))
    chosen = conditions(
        data=data.name,
        questions=len(requests),
        skipped=skip,
        prompt_tokens_mean=round(statistics.mean(len(request.draft.prompt) for request in requests)),
        max_new_tokens=max_new_tokens,
        max_nodes=engine.max_nodes,
        model=engine.profile.model,
        device=engine.device,
        dtype=engine.dtype_name,
    )
    plain = replies["plain"]
    return {"conditions": chosen, "methods": [_figures(method, replies[method], plain) for method in methods]}


def _figures(method: str, replies: list[Reply], plain: list[Reply]) -> dict[str, Any]:
    decoded = sum(len(reply.tokens) - reply.first for reply in replies)
    seconds = sum(reply.decode_s for reply in replies)
    passes = sum(reply.passes for reply in replies)
    rates = [(len(reply.tokens) - reply.first) / reply.decode_s for reply in replies if reply.passes]
    identical = sum(reply.tokens == other.tokens for reply, other in zip(replies, plain, strict=True))
    line = {
        "method": method,
        "tokens": decoded,
        "decode_s": round(seconds, 3),
        "tokens_per_s": round(decoded / seconds, 2) if seconds else 0.0,
        "accept_length": round(decoded / passes, 3) if passes else 1.0,
        "time_to_first_token_s": round(statistics.median(reply.first_s for reply in replies), 3),
        "identical_to_plain": round(identical / len(replies), 4),
        "spread": {
            "tokens_per_s_min": round(min(rates, default=0.0), 2),
            "tokens_per_s_median": round(statistics.median(rates or [0.0]), 2),
            "tokens_per_s_max": round(max(rates, default=0.0), 2),
        },
    }
    proposals = [seconds for reply in replies for seconds in reply.propose_s]
    if proposals and method != "plain":
        line["build_ms_median"] = round(1000 * statistics.median(reply.start_s for reply in replies), 3)
        line["propose_ms_median"] = round(1000 * statistics.median(proposals), 3)
        line["nodes_per_pass"] = round(sum(reply.nodes for reply in replies) / max(1, passes), 1)
    return line
