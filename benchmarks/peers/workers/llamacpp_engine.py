"""llama.cpp through llama-cpp-python, plain or with its own prompt lookup.

Runs in its own environment, below serve.py. The model is a GGUF file and keeps that file's quantisation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding


class Engine:
    """Generates greedily; counts the calls that evaluate tokens as forward passes."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._passes = 0
        self._evaluate = model.eval
        model.eval = self._counted

    def _counted(self, tokens: Sequence[int]) -> None:
        self._passes += 1
        self._evaluate(tokens)

    def answer(self, prompt: list[int], max_new_tokens: int, stop: list[int]) -> Iterator[tuple[list[int], int]]:
        """Yield token by token; accepted ones of a draft come at once."""
        self._model.reset()  # else what this prompt shares with the last one would be free
        self._passes = 0
        ends = set(stop)
        generated = self._model.generate(prompt, top_k=1, temp=0.0, repeat_penalty=1.0)
        for count, token in enumerate(generated, 1):
            yield [token], self._passes
            if token in ends or count == max_new_tokens:
                return


def load(options: dict[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """An engine for options model, context, threads and lookup (arguments of its prompt lookup, or none)."""
    lookup = options.get("lookup")
    model = llama_cpp.Llama(
        options["model"],
        n_ctx=options["context"],
        n_threads=options["threads"],
        n_threads_batch=options["threads"],
        logits_all=bool(lookup),  # a draft model needs them, and fails beyond the first batch without
        draft_model=LlamaPromptLookupDecoding(**lookup) if lookup else None,
        verbose=False,
    )
    settings = {
        "engine": f"llama-cpp-python {llama_cpp.__version__}",
        "model": os.path.basename(options["model"]),
        "threads": model.n_threads,
        "lookup": lookup,
    }
    return Engine(model), settings
