"""vLLM's CPU engine, in the worker's own process: one request at a time or several, their output step by step.

Runs in vLLM's own environment, below serve.py. What it is given to be at its best: both cores (in a process of its
own its engine would keep one of two cores for scheduling), no tokenizer, tokens as they come. Only the prefix cache
is off: what prompts share would be free, to nobody else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_PLUGINS="",  # arctic-inference's own plugin is for other versions; its suffix trees are all that is needed
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
)

import torch
import vllm
from vllm import LLM, SamplingParams
from vllm.sampling_params import RequestOutputKind


class Engine:
    """Steps vLLM's engine until its requests are finished."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._asked = 0

    def answer(self, prompt: list[int], max_new_tokens: int, stop: list[int]) -> Iterator[tuple[list[int], int]]:
        """Yield what every step emitted."""
        passes = 0
        for _, new in self.answer_all([prompt], 1, max_new_tokens, stop):
            if new:
                passes += 1
                yield new, passes

    def answer_all(
        self, prompts: list[list[int]], at_once: int, max_new_tokens: int, stop: list[int]
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield (prompt's number, what a step emitted for it); nothing emitted means that it begins."""
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_new_tokens,
            stop_token_ids=stop,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        waiting = list(enumerate(prompts))[::-1]
        running: dict[str, int] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                number, prompt = waiting.pop()
                self._asked += 1
                running[str(self._asked)] = number
                yield number, []
                self._engine.add_request(str(self._asked), {"prompt_token_ids": prompt}, params)
            for output in self._engine.step():
                if new := list(output.outputs[0].token_ids):
                    yield running[output.request_id], new
                if output.finished:
                    del running[output.request_id]

    def forget(self) -> None:
        """Forget what past answers taught the drafter: a new one in its place."""
        runner = self._engine.model_executor.driver_worker.worker.model_runner
        if hasattr(runner, "drafter"):
            runner.drafter = type(runner.drafter)(runner.vllm_config)


def load(options: dict[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """An engine for options model, context, threads and speculative (its speculative_config, or none).

    May be given, too: dtype, at_once (requests in one step), step_tokens (of one step), cache_gb and path
    (to import a drafter from).
    """
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(options.get("cache_gb", 1))
    if path := options.get("path"):
        sys.path.insert(0, path)
    torch.set_num_threads(options["threads"])
    speculative, dtype = options.get("speculative"), options.get("dtype", "bfloat16")
    llm = LLM(
        model=options["model"],
        dtype=dtype,
        max_model_len=options["context"],
        max_num_seqs=options.get("at_once", 1),
        max_num_batched_tokens=options.get("step_tokens"),
        enable_prefix_caching=False,
        skip_tokenizer_init=True,
        speculative_config=speculative,
        seed=0,
    )
    settings = {
        "engine": f"vllm {vllm.__version__}",
        "dtype": dtype,
        "threads": torch.get_num_threads(),
        "speculative": speculative,
        "preloaded": os.path.basename(os.environ.get("LD_PRELOAD", "")) or None,
    }
    return Engine(llm.llm_engine), settings
