"""Every question to every method in turn, all in one run; a method that fails is left out from then on, and told of.

Only one engine works at a time: ours computes in this process, the others in workers that are stopped in between.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from app.answering.engine import Engine
from app.setup.models import Say
from benchmarks.conditions import conditions
from benchmarks.data import PromptExample
from benchmarks.decode import Ours, answer_ways, make_request
from benchmarks.peers.environments import variables
from benchmarks.peers.figures import comparisons, figures
from benchmarks.peers.methods import PEERS, Homes, Missing, gguf_file
from benchmarks.peers.worker import Worker, WorkerError
from benchmarks.replies import Answerer, Reply
from decoding.drafter import DraftRequest
from decoding.loop import DecodeRequest
from retrieval.indexing import Progress

WARM_UPS, WARM_UP_TOKENS = 2, 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may take: threads of each engine, tokens of an answer, seconds of an answer and of loading."""

    threads: int = 2
    max_new_tokens: int = 128
    answer_s: float = 120.0
    load_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the engines come from."""

    engine_of: Callable[[str], Engine]
    homes: Homes
    limits: Limits
    say: Say


@dataclass(frozen=True, slots=True)
class Asked:
    """A worker as one way to answer; the times are its own."""

    worker: Worker
    timeout_s: float

    def __call__(self, request: DecodeRequest) -> Reply:
        """Answer. Raises WorkerError."""
        stop = sorted(request.stop_tokens)
        got = self.worker.ask(request.draft.prompt, request.max_new_tokens, stop, self.timeout_s)
        return Reply(tuple(got["tokens"]), got["first"], got["passes"], got["first_s"], got["decode_s"])


def measure(
    setting: Setting,
    methods: Sequence[str],
    missing: Sequence[Missing],
    data: str,
    examples: Sequence[PromptExample],
    progress: Progress,
) -> dict[str, Any]:
    """Load all, warm up all, ask all; the conditions, a line per method, the ratios, and what was missing."""
    torch.set_num_threads(setting.limits.threads)
    baseline = setting.engine_of("bfloat16")
    requests = [make_request(baseline, example, setting.limits.max_new_tokens) for example in examples]
    failed: dict[str, str] = {}
    engines: dict[str, Any] = {}
    with contextlib.ExitStack() as workers:
        answerers = _load(setting, methods, requests, workers, failed, engines, progress)
        load = round(os.getloadavg()[0], 2)
        _warm_up(answerers, requests, failed, progress)
        replies = _ask(answerers, requests, failed, progress)
    good = {method: replies[method] for method in methods if method not in failed}
    chosen = conditions(
        data=data,
        questions=len(requests),
        prompt_tokens_mean=round(statistics.mean(len(request.draft.prompt) for request in requests)),
        max_new_tokens=setting.limits.max_new_tokens,
        threads_each=setting.limits.threads,
        load_average_before=load,
        model=baseline.profile.model,
        **engines,
    )
    return {
        "conditions": chosen,
        "methods": [figures(method, good) for method in good],
        "comparisons": comparisons(good),
        "failed": failed,
        "missing": [{"methods": item.methods, "why": item.why, "install": item.commands} for item in missing],
    }


def _load(
    setting: Setting,
    methods: Sequence[str],
    requests: Sequence[DecodeRequest],
    workers: contextlib.ExitStack,
    failed: dict[str, str],
    engines: dict[str, Any],
    progress: Progress,
) -> dict[str, Answerer]:
    """Ours first: they measure what verifying costs, and want the machine for themselves."""
    context = max(len(request.draft.prompt) for request in requests) + setting.limits.max_new_tokens + 64
    answerers: dict[str, Answerer] = {}
    for done, method in enumerate(sorted(methods, key=lambda method: method in PEERS)):
        progress("Loading", done, len(methods))
        if method not in PEERS:
            name, _, dtype = method.partition(":")
            answerers[method] = answer_ways(setting.engine_of(dtype or "bfloat16"), [name])[name]
            continue
        try:
            worker, engines[method] = _start(setting, method, context, workers)
            answerers[method] = Asked(worker, setting.limits.answer_s)
        except WorkerError as error:
            failed[method] = str(error)
    progress("Loading", len(methods), len(methods))
    return answerers


def _start(setting: Setting, method: str, context: int, workers: contextlib.ExitStack) -> tuple[Worker, dict[str, Any]]:
    peer, homes, limits = PEERS[method], setting.homes, setting.limits
    model = gguf_file(homes.root, setting.say) if peer.gguf else setting.engine_of("bfloat16").model_folder
    python = homes.python(peer.environment)
    setting.say(f"Loading {method}; the first time its engine may compile for some minutes")
    environment = variables(peer.environment, python, homes.root / "caches", limits.threads)
    worker = workers.enter_context(Worker(python, peer.engine, environment))
    options: Mapping[str, Any] = {"model": str(model), "context": context, "threads": limits.threads, **peer.options}
    return worker, worker.load(options, limits.load_s)


def _warm_up(
    answerers: dict[str, Answerer], requests: Sequence[DecodeRequest], failed: dict[str, str], progress: Progress
) -> None:
    """The first prompts backwards: as long as the real ones, and nothing of the answers to learn from them."""
    for number in range(WARM_UPS):
        progress("Warming up", number, WARM_UPS)
        request = requests[number % len(requests)]
        backwards = DraftRequest(request.draft.prompt[::-1], request.draft.references)
        _round(answerers, replace(request, draft=backwards, max_new_tokens=WARM_UP_TOKENS), list(answerers), failed)
    progress("Warming up", WARM_UPS, WARM_UPS)
    for answerer in answerers.values():
        if isinstance(answerer, Ours):
            answerer.reset()


def _ask(
    answerers: dict[str, Answerer], requests: Sequence[DecodeRequest], failed: dict[str, str], progress: Progress
) -> dict[str, list[Reply]]:
    replies: dict[str, list[Reply]] = {method: [] for method in answerers}
    order = list(answerers)
    for done, request in enumerate(requests):
        progress("Questions", done, len(requests))
        turn = done % len(order)  # nobody always runs first
        for method, reply in _round(answerers, request, order[turn:] + order[:turn], failed).items():
            replies[method].append(reply)
    progress("Questions", len(requests), len(requests))
    return replies


def _round(
    answerers: Mapping[str, Answerer], request: DecodeRequest, order: Sequence[str], failed: dict[str, str]
) -> dict[str, Reply]:
    replies = {}
    for method in order:
        if method not in failed:
            try:
                replies[method] = answerers[method](request)
            except WorkerError as error:
                failed[method] = str(error)
    return replies
