"""Tiny models with random weights, one per architecture, and what plain decoding makes of them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from decoding.drafter import Drafter, DraftRequest, Reference
from decoding.drafters.plain import PlainDrafter
from decoding.hf_target import HuggingFaceTarget
from decoding.lean.cpu_target import CpuLeanTarget
from decoding.lean.shape import read_shape
from decoding.lean.torch_target import LeanTarget
from decoding.lean.weights import read_weights
from decoding.loop import DecodeRequest, Finished, Step, decode, never

VOCABULARY = 64
CONTEXT = 96
WINDOW = 12
ANSWER = 40

SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": CONTEXT,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
    "initializer_range": 0.2,
    "tie_word_embeddings": False,
}
GQA = SMALL | {"num_key_value_heads": 2}
HALF = GQA | {"head_dim": 8}
MIXED: dict[str, Any] = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}

# Name of the case: model type and configuration.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", GQA),
    "qwen2": ("qwen2", GQA),
    "qwen2, one layer sliding": ("qwen2", GQA | MIXED | {"use_sliding_window": True}),
    "qwen3": ("qwen3", HALF),
    "mistral": ("mistral", GQA | {"sliding_window": None}),
    "mistral, sliding": ("mistral", GQA | {"sliding_window": WINDOW}),
    "phi3": ("phi3", GQA | {"sliding_window": None}),
    "gpt2": ("gpt2", SMALL),
    "gemma2": ("gemma2", HALF | MIXED | {"attn_logit_softcapping": 1.0}),
    "gemma3": ("gemma3_text", HALF | MIXED),
}

# What the lean forward pass computes too: the same models under other names.
LEAN = {f"lean {name}": ARCHITECTURES[name] for name in ("llama", "qwen2", "qwen3", "mistral")}


# The CPU's kernels in each number format. Their vectors want wider heads; the vocabulary is no multiple of 32.
WIDE = GQA | {"hidden_size": 64, "head_dim": 32, "intermediate_size": 96}
KERNELS = {
    "kernels, float32": ("llama", WIDE, "float32"),
    "kernels, bfloat16": ("qwen2", WIDE, "bfloat16"),
    "kernels, int8": ("qwen3", WIDE, "int8"),
}


def tiny_model(kind: str, config: dict[str, Any], attention: str = "eager") -> Any:
    """A model in float64; the same weights every time."""
    torch.manual_seed(7)
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **config), attn_implementation=attention)
    return made.double().eval()


def varied_model(kind: str, config: dict[str, Any]) -> Any:
    """The model, with biases and norms that are not zero and one, as transformers would begin with."""
    model = tiny_model(kind, config)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def lean_target(model: Any) -> LeanTarget:
    """The lean target with the weights of a transformers model."""
    shape = read_shape(model.config)
    return LeanTarget(shape, read_weights(shape, model.state_dict(), model.config, model.dtype, model.device))


def kernel_target(model: Any, number_format: str, threads: int | None = None) -> CpuLeanTarget:
    """The target on the CPU's kernels with the weights of a transformers model."""
    shape = read_shape(model.config)
    weights = read_weights(shape, model.state_dict(), model.config, torch.float32, "cpu")
    return CpuLeanTarget(shape, weights, number_format, threads=threads)


@functools.cache
def tiny_target(name: str) -> HuggingFaceTarget | LeanTarget | CpuLeanTarget:
    """The target model of an architecture; its cache is shared, as between the answers of an application."""
    if name in KERNELS:
        kind, config, number_format = KERNELS[name]
        return kernel_target(tiny_model(kind, config), number_format, threads=2)
    return lean_target(tiny_model(*LEAN[name])) if name in LEAN else HuggingFaceTarget(tiny_model(*ARCHITECTURES[name]))


def prompt_tokens(seed: int, length: int = 20) -> tuple[int, ...]:
    """A prompt, longer than the windows."""
    return tuple(random.Random(seed).choices(range(VOCABULARY), k=length))


@functools.cache
def plain_answer(name: str, seed: int = 0, length: int = ANSWER) -> tuple[int, ...]:
    """What greedy decoding without drafts makes of a prompt."""
    request = DecodeRequest(DraftRequest(prompt_tokens(seed)), max_new_tokens=length)
    return emitted(name, PlainDrafter(), request)[0]


def copied_request(name: str, seed: int = 0, spoil: int = 7) -> DraftRequest:
    """A prompt and two references: the answer to it with every `spoil`-th token changed, and other text."""
    answer = plain_answer(name, seed)
    near = tuple((token + (at % spoil == spoil - 1)) % VOCABULARY for at, token in enumerate(answer))
    return DraftRequest(prompt_tokens(seed), (Reference(near), Reference(prompt_tokens(seed + 100, 60))))


def events(
    name: str, drafter: Drafter, request: DecodeRequest, cancelled: Callable[[], bool] = never
) -> tuple[list[Step], Finished]:
    """All steps of an answer, and its end."""
    found = list(decode(tiny_target(name), drafter, request, cancelled))
    end = found[-1]
    assert isinstance(end, Finished)
    return [event for event in found if isinstance(event, Step)], end


def emitted(name: str, drafter: Drafter, request: DecodeRequest) -> tuple[tuple[int, ...], Finished]:
    """The tokens of an answer, and its end."""
    steps, end = events(name, drafter, request)
    return tuple(token for step in steps for token in step.tokens), end


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal but for float32, in which norms, rotations and eager softmax are computed whatever the model's format."""
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-5)
