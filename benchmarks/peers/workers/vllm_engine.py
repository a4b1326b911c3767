"""vLLM's CPU engine, in the worker's own process: one request at a time, its output step by step.

Runs in vLLM's own environment, below serve.py. What it is given to be at its best: both cores (in a process of its
own its engine would keep one of two cores for scheduling), no tokenizer, tokens as they come. Only the prefix cache
is off: what prompts share would be free, to nobody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_PLUGINS="",  # arctic-inference's own plugin is for other versions; its suffix trees are all that is needed
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
)

import torch
import vllm
from vllm import LLM, SamplingParams
from vllm.sampling_params import RequestOutputKind


class Engine:
    """Steps vLLM's engine until the one request is finished."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._asked = 0

    def answer(self, prompt: list[int], max_new_tokens: int, stop: list[int]) -> Iterator[tuple[list[int], int]]:
        """Yield what every step emitted."""
        self._asked += 1
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_new_tokens,
            stop_token_ids=stop,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        self._engine.add_request(str(self._asked), {"prompt_token_ids": prompt}, params)
        passes = 0
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                if new := list(output.outputs[0].token_ids):
                    passes += 1
                    yield new, passes


def load(options: dict[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """An engine for options model, context, threads and speculative (its speculative_config, or none)."""
    torch.set_num_threads(options["threads"])
    speculative = options.get("speculative")
    llm = LLM(
        model=options["model"],
        dtype="bfloat16",
        max_model_len=options["context"],
        max_num_seqs=1,
        enable_prefix_caching=False,
        skip_tokenizer_init=True,
        speculative_config=speculative,
        seed=0,
    )
    settings = {
        "engine": f"vllm {vllm.__version__}",
        "dtype": "bfloat16",
        "threads": torch.get_num_threads(),
        "speculative": speculative,
        "preloaded": os.path.basename(os.environ.get("LD_PRELOAD", "")) or None,
    }
    return Engine(llm.llm_engine), settings
