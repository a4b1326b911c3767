"""Every chunk of prompts to every method in turn; the workers and their environment are those of `peers`.

Speed is measured in one number format, then whether the words are the same in float32. A method that fails is left
out from then on, and told of. What past answers taught a drafter is forgotten before each pass over the prompts, else
vLLM's suffix decoding, which remembers all answers, would find its own of the pass before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.setup.models import Say
from app.setup.vllm_server import REPOSITORY, speculative_config
from benchmarks.peers.environments import ENVIRONMENTS, variables
from benchmarks.peers.methods import PEERS, Homes
from benchmarks.peers.worker import Worker, WorkerError
from retrieval.indexing import Progress

PLAIN, NGRAM, SUFFIX, OURS = METHODS = ("plain", "n-gram", "suffix", "ours")
VLLM = ENVIRONMENTS["vllm"]
ENGINE = PEERS["vllm-plain"].engine
WARM_UP_TOKENS = 16
CACHE_GB = 1
STEP_TOKENS = 2048  # as vLLM's server has it on a CPU
MARGIN = 64  # tokens of context beyond the longest answer: vLLM drafts for nobody where one request is near its end


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked: prompts as tokens, how many at once, and how often; timeouts in seconds."""

    prompts: Sequence[Sequence[int]]
    stop: Sequence[int]
    levels: Sequence[int]
    rounds: int
    max_new_tokens: int
    draft_tokens: int = 24
    threads: int = 2
    answer_s: float = 120.0
    load_s: float = 600.0

    def chunks(self, at_once: int) -> list[tuple[int, ...]]:
        """Numbers of the prompts that are asked before it is the next method's turn."""
        size = 1 if at_once == 1 else max(self.levels)
        numbers = range(len(self.prompts))
        return [tuple(numbers[at : at + size]) for at in range(0, len(numbers), size)]

    def options(self, method: str, model: Path, dtype: str) -> dict[str, Any]:
        """What a worker is loaded with."""
        speculative = {
            PLAIN: None,
            NGRAM: PEERS["vllm-ngram"].options["speculative"],
            SUFFIX: PEERS["vllm-suffix"].options["speculative"],
            OURS: speculative_config(self.draft_tokens),
        }
        context = max(map(len, self.prompts)) + self.max_new_tokens + MARGIN
        return {
            "model": str(model), "context": context, "threads": self.threads, "speculative": speculative[method],
            "dtype": dtype, "at_once": max(self.levels), "cache_gb": CACHE_GB, "step_tokens": STEP_TOKENS,
            "path": str(REPOSITORY),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pass:
    """One chunk answered by one method: the answers as workers tell of them, and seconds for all."""

    method: str
    at_once: int
    round: int
    numbers: tuple[int, ...]
    answers: Sequence[Mapping[str, Any]]
    seconds: float


@dataclass(slots=True)
class Measured:
    """All that came back, and what failed."""

    passes: list[Pass] = field(default_factory=list)
    engines: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def measure(
    plan: Plan, methods: Sequence[str], model: Path, dtype: str, homes: Homes, say: Say, progress: Progress
) -> Measured:
    """Load the methods, warm them up, and ask everything."""
    found = Measured()
    with contextlib.ExitStack() as stack:
        workers = {}
        for done, method in enumerate(methods):
            progress(f"Loading ({dtype})", done, len(methods))
            try:
                workers[method] = _loaded(plan, method, model, dtype, homes, say, stack, found)
            except WorkerError as error:
                found.failed[method] = str(error)
        progress(f"Loading ({dtype})", len(methods), len(methods))
        turns = [(round_, level) for round_ in range(plan.rounds) for level in plan.levels]
        total, done = sum(len(plan.chunks(level)) for _, level in turns), 0
        for round_, level in turns:
            for method, worker in _good(workers, found):
                _warm_up(plan, method, worker, level, found)
            for turn, chunk in enumerate(plan.chunks(level)):
                progress(f"Prompts ({dtype})", done, total)
                for method, worker in _good(workers, found, turn):
                    _ask(plan, method, worker, level, round_, chunk, found)
                done += 1
        progress(f"Prompts ({dtype})", total, total)
    return found


def _loaded(
    plan: Plan,
    method: str,
    model: Path,
    dtype: str,
    homes: Homes,
    say: Say,
    stack: contextlib.ExitStack,
    found: Measured,
) -> Worker:
    say(f"Loading vLLM, {method}, {dtype}; the first time it may compile for some minutes")
    python = homes.python(VLLM)
    environment = variables(VLLM, python, homes.root / "caches", plan.threads)
    worker = stack.enter_context(Worker(python, ENGINE, environment))
    found.engines[method] = worker.load(plan.options(method, model, dtype), plan.load_s)
    return worker


def _good(workers: Mapping[str, Worker], found: Measured, turn: int = 0) -> Iterator[tuple[str, Worker]]:
    """Those that have not failed; nobody always runs first."""
    order = list(workers.items())
    turn %= max(len(order), 1)
    return ((method, worker) for method, worker in order[turn:] + order[:turn] if method not in found.failed)


def _warm_up(plan: Plan, method: str, worker: Worker, level: int, found: Measured) -> None:
    """Forget all; then prompts backwards, as many and as long as the real ones: nothing of the answers to learn."""
    backwards = [prompt[::-1] for prompt in plan.prompts[:level]]
    try:
        worker.ask_all(backwards[:1], level, 1, plan.stop, plan.answer_s, forget=True)
        worker.ask_all(backwards, level, WARM_UP_TOKENS, plan.stop, plan.answer_s * (1 + len(backwards)))
    except WorkerError as error:
        found.failed[method] = str(error)


def _ask(
    plan: Plan, method: str, worker: Worker, level: int, round_: int, chunk: tuple[int, ...], found: Measured
) -> None:
    prompts = [plan.prompts[number] for number in chunk]
    try:
        got = worker.ask_all(prompts, level, plan.max_new_tokens, plan.stop, plan.answer_s * len(chunk))
    except WorkerError as error:
        found.failed[method] = str(error)
    else:
        found.passes.append(Pass(method, level, round_, chunk, got["answers"], got["seconds"]))
