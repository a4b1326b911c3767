"""One way to answer a prompt each: our drafters on our target, and transformers' own generation.

All are timed the same: the first token's time apart, then the tokens after it per second.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, StoppingCriteria, StoppingCriteriaList

from app.answering.engine import Engine
from decoding.drafter import Drafter
from decoding.loop import DecodeRequest, Finished, Step, decode
from decoding.target import TargetModel
from decoding.targets import NUMBER_FORMATS

Answerer = Callable[[DecodeRequest], "Reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """Tokens, how many the first pass emitted, passes after it, and the times in seconds."""

    tokens: tuple[int, ...]
    first: int
    passes: int
    first_s: float
    decode_s: float
    start_s: float = 0.0
    propose_s: tuple[float, ...] = ()
    nodes: int = 0
    drafter_error: str | None = None


def our_reply(target: TargetModel, drafter: Drafter, request: DecodeRequest) -> Reply:
    """Decode with one of our drafters; preparing it counts as time to the first token, as people feel it."""
    began = time.perf_counter()
    *events, ended = decode(target, drafter, request)
    assert isinstance(ended, Finished)
    steps = [event for event in events if isinstance(event, Step)]
    total = time.perf_counter() - began
    decode_s = sum(step.duration_s for step in steps[1:])
    return Reply(
        tuple(token for step in steps for token in step.tokens),
        len(steps[0].tokens),
        len(steps) - 1,
        total - decode_s,
        decode_s,
        steps[0].draft_s,
        tuple(step.draft_s for step in steps[1:]),
        sum(step.nodes for step in steps),
        ended.drafter_error,
    )


@functools.cache
def load_peer(engine: Engine) -> PreTrainedModel:
    """The same weights as transformers loads them by default, for its own generation."""
    model = AutoModelForCausalLM.from_pretrained(
        engine.model_folder, dtype=NUMBER_FORMATS[engine.dtype_name], local_files_only=True
    )
    return model.to(engine.device).eval()


class _Clock(StoppingCriteria):  # type: ignore[misc]
    """Notes when, and with how many tokens, each of transformers' steps ended; never stops."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, int]] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        self.marks.append((time.perf_counter(), input_ids.shape[1]))
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


def transformers_reply(model: PreTrainedModel, request: DecodeRequest, **options: Any) -> Reply:
    """Decode greedily with transformers' generate; `options` such as prompt_lookup_num_tokens=10 go to it."""
    prompt = torch.tensor([request.draft.prompt], device=model.device)
    clock = _Clock()
    began = time.perf_counter()
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        max_new_tokens=request.max_new_tokens,
        eos_token_id=sorted(request.stop_tokens),
        pad_token_id=min(request.stop_tokens),
        stopping_criteria=StoppingCriteriaList([clock]),
        **options,
    )
    end = time.perf_counter()
    first_at, first_length = clock.marks[0]
    tokens = tuple(out[0, prompt.shape[1] :].tolist())
    first = min(first_length - prompt.shape[1], len(tokens))
    return Reply(tokens, first, len(clock.marks) - 1, first_at - began, end - first_at)
