"""Speed of every way to write the same answers, interleaved per question in one process."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.answering.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.data import PromptExample, read_prompts
from benchmarks.replies import Answerer, Reply, load_peer, our_reply, transformers_reply
from decoding.budget import NodeBudget
from decoding.drafter import Drafter, DraftRequest, Reference
from decoding.drafters import DRAFTERS, make_drafter
from decoding.loop import DecodeRequest
from decoding.target import TargetModel
from indexes.errors import SettingError
from retrieval.indexing import Progress

TRANSFORMERS: dict[str, dict[str, Any]] = {"hf-generate": {}, "hf-prompt-lookup": {"prompt_lookup_num_tokens": 10}}
MOST_NODES = 1024  # as in settings
METHODS = (*DRAFTERS, *TRANSFORMERS)
NO_DATASTORES: Mapping[str, Path] = MappingProxyType({})


def make_request(engine: Engine, example: PromptExample, max_new_tokens: int) -> DecodeRequest:
    """The example as one user message, its references tokenised alone."""
    writer = engine.writer
    text = engine.tokenizer.apply_chat_template(
        [{"role": "user", "content": writer.harmless(example.prompt)}], tokenize=False, add_generation_prompt=True
    )
    prompt = tuple(engine.tokenizer(text, add_special_tokens=False).input_ids)
    references = tuple(Reference(writer.encode(reference)) for reference in example.references)
    return DecodeRequest(DraftRequest(prompt, references), max_new_tokens, engine.stop_tokens, engine.max_nodes)


def answer_ways(
    engine: Engine, methods: Sequence[str], datastores: Mapping[str, Path] = NO_DATASTORES
) -> dict[str, Answerer]:
    """How each method answers; `datastores` are folders by drafter, instead of the engine's.

    Raises SettingError for an unknown one, or one that needs what was not chosen."""
    answerers: dict[str, Answerer] = {}
    for method in methods:
        name, _, nodes = method.partition("@")
        if method in TRANSFORMERS:
            answerers[method] = partial(transformers_reply, load_peer(engine), **TRANSFORMERS[method])
        elif name not in DRAFTERS or not (method == name or (nodes.isdecimal() and int(nodes) <= MOST_NODES)):
            raise SettingError(
                f"unknown method {method!r}; choose from {', '.join(METHODS)}, or add a fixed number of nodes, "
                f"{MOST_NODES} at most: trie@8"
            )
        else:
            answerers[method] = _ours(engine, name, int(nodes) if nodes else None, datastores.get(name))
    return answerers


@dataclass(frozen=True, slots=True)
class Ours:
    """One drafter for all questions, as one person would have it; `nodes` makes the budget a fixed one."""

    target: TargetModel
    drafter: Drafter
    budget: NodeBudget | None
    nodes: int | None

    def __call__(self, request: DecodeRequest) -> Reply:
        """Answer, and learn from it."""
        most = request.max_nodes if self.nodes is None else self.nodes
        return our_reply(self.target, self.drafter, replace(request, budget=self.budget, max_nodes=most))

    def reset(self) -> None:
        """Forget all answers."""
        self.drafter.reset()
        if self.budget:
            self.budget.reset()


def _ours(engine: Engine, name: str, nodes: int | None, datastore: Path | None) -> Ours:
    resources = engine.resources(name)
    if datastore:
        resources = replace(resources, datastore=datastore, tokenizer_hash=engine.tokenizer_hash)
    budget = engine.node_budget(name) if nodes is None else None
    return Ours(engine.target, make_drafter(name, resources), budget, nodes)


def run(
    engine: Engine,
    data: Path,
    data_format: str | None,
    methods: Sequence[str],
    limit: int | None,
    skip: int,
    max_new_tokens: int,
    progress: Progress,
    runs: int = 1,
    datastores: Mapping[str, Path] = NO_DATASTORES,
) -> dict[str, Any]:
    """Time every method on every question, in turn, `runs` times over, after one short warm-up of each.

    Drafters learn from question to question, but from no answer that they give again: each run begins afresh.
    """
    examples = read_prompts(data, data_format, None if limit is None else skip + limit)[skip:]
    if not examples:
        raise SettingError(f"{data} holds no more than the {skip} questions that --skip leaves out")
    answerers = answer_ways(engine, list(dict.fromkeys(["plain", *methods])), datastores)
    requests = [make_request(engine, example, max_new_tokens) for example in examples]
    for answerer in answerers.values():
        answerer(make_request(engine, examples[0], 8))
    replies: dict[str, list[Reply]] = {method: [] for method in answerers}
    total = runs * len(requests)
    for done in range(total):
        progress("Questions", done, total)
        if done % len(requests) == 0:
            for answerer in answerers.values():
                if isinstance(answerer, Ours):
                    answerer.reset()
        order = list(answerers)
        for method in order[done % len(order) :] + order[: done % len(order)]:  # nobody always runs first
            replies[method].append(answerers[method](requests[done % len(requests)]))
    progress("Questions", total, total)
    chosen = conditions(
        data=data.name,
        questions=len(requests),
        skipped=skip,
        runs=runs,
        prompt_tokens_mean=round(statistics.mean(len(request.draft.prompt) for request in requests)),
        max_new_tokens=max_new_tokens,
        max_nodes=engine.max_nodes,
        node_budget=engine.settings.node_budget,
        model=engine.profile.model,
        device=engine.device,
        dtype=engine.dtype_name,
        target=engine.target.kind,
    )
    plain = replies["plain"]
    return {"conditions": chosen, "methods": [_figures(method, replies[method], plain, runs) for method in methods]}


def _figures(method: str, replies: list[Reply], plain: list[Reply], runs: int) -> dict[str, Any]:
    decoded = sum(len(reply.tokens) - reply.first for reply in replies)
    seconds = sum(reply.decode_s for reply in replies)
    rate = _rate(replies)
    passes = sum(reply.passes for reply in replies)
    rates = [(len(reply.tokens) - reply.first) / reply.decode_s for reply in replies if reply.passes]
    identical = sum(reply.tokens == other.tokens for reply, other in zip(replies, plain, strict=True))
    each = len(replies) // runs
    times = [_total_s(replies[at : at + each]) / _total_s(plain[at : at + each]) for at in range(0, len(replies), each)]
    line = {
        "method": method,
        "tokens": decoded,
        "decode_s": round(seconds, 3),
        "tokens_per_s": round(rate, 2),
        "speed_up": round(rate / _rate(plain), 3),
        "accept_length": round(decoded / passes, 3) if passes else 1.0,
        "time_to_first_token_s": round(statistics.median(reply.first_s for reply in replies), 3),
        "total_time_against_plain": round(statistics.median(times), 4),
        "identical_to_plain": round(identical / len(replies), 4),
        "spread": {
            "tokens_per_s_min": round(min(rates, default=0.0), 2),
            "tokens_per_s_median": round(statistics.median(rates or [0.0]), 2),
            "tokens_per_s_max": round(max(rates, default=0.0), 2),
        },
    }
    if runs > 1:
        line["total_times"] = {f"run {number}": round(value, 4) for number, value in enumerate(times, 1)}
    if failed := [reply.drafter_error for reply in replies if reply.drafter_error]:
        line["drafter_switched_off"] = f"in {len(failed)} of {len(replies)} answers: {failed[0]}"
    proposals = [seconds for reply in replies for seconds in reply.propose_s]
    if proposals and method != "plain":
        line["build_ms_median"] = round(1000 * statistics.median(reply.start_s for reply in replies), 3)
        line["propose_ms_median"] = round(1000 * statistics.median(proposals), 3)
        line["nodes_per_pass"] = round(sum(reply.nodes for reply in replies) / max(1, passes), 1)
    return line


def _total_s(replies: Sequence[Reply]) -> float:
    return sum(reply.first_s + reply.decode_s for reply in replies)


def _rate(replies: Sequence[Reply]) -> float:
    """Tokens per second after the first; 1 if there were none."""
    decoded = sum(len(reply.tokens) - reply.first for reply in replies)
    return decoded / sum(reply.decode_s for reply in replies) if decoded else 1.0
