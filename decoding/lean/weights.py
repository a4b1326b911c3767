"""The weights of a Llama-family model, fused: one product for queries, keys and values, one for gate and up.

They come from Hugging Face names, tensor by tensor, or are random (for benchmarks without weights). Knows no forward
pass. A mapping that reads a tensor from its file when asked (`decoding.lean.files`) keeps memory at one copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

from decoding.lean.shape import LeanShape
from indexes.errors import ModelError

ROTARY = {
    "llama": LlamaRotaryEmbedding,
    "mistral": MistralRotaryEmbedding,
    "qwen2": Qwen2RotaryEmbedding,
    "qwen3": Qwen3RotaryEmbedding,
}
SPREAD = 0.02  # of random weights, as transformers initialises most models


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer. H hidden, Q query width, KV key width, I intermediate, D head width; rows are outputs.

    qkv      (Q + 2 KV, H) queries, then keys, then values; each head's rows together
    gate_up  (2 I, H) gate, then up
    """

    input_norm: Tensor  # (H,)
    qkv: Tensor
    qkv_bias: Tensor | None  # (Q + 2 KV,)
    q_norm: Tensor | None  # (D,)
    k_norm: Tensor | None  # (D,)
    out: Tensor  # (H, Q)
    out_bias: Tensor | None  # (H,)
    mlp_norm: Tensor  # (H,)
    gate_up: Tensor
    gate_up_bias: Tensor | None  # (2 I,)
    down: Tensor  # (H, I)
    down_bias: Tensor | None  # (H,)


@dataclass(frozen=True, slots=True)
class LeanWeights:
    """All weights. `head` is `embed` itself when they are tied.

    cos, sin  (C, D) what queries and keys at each position are rotated by, attention factor included; float32, in
              float64 models float64
    """

    embed: Tensor  # (V, H)
    layers: tuple[LayerWeights, ...]
    norm: Tensor  # (H,)
    head: Tensor  # (V, H)
    cos: Tensor
    sin: Tensor

    def tensors(self) -> list[Tensor]:
        """All of them; a tied head stands here twice."""
        parts = [getattr(layer, field.name) for layer in self.layers for field in fields(layer)]
        return [self.embed, self.norm, self.head, self.cos, self.sin, *(part for part in parts if part is not None)]


_Parts = Sequence[tuple[str, int]]  # the tensors that stand in one, one below the other: names and rows
_Fill = Callable[[Tensor, _Parts], None]


def read_weights(
    shape: LeanShape, state: Mapping[str, Tensor], config: Any, dtype: torch.dtype, device: torch.device | str
) -> LeanWeights:
    """Fuse the tensors of `state`, which has Hugging Face's names, into new ones of `dtype` on `device`.

    Raises ModelError naming a tensor that is missing or of another shape.
    """

    def fill(into: Tensor, parts: _Parts) -> None:
        start = 0
        for name, rows in parts:
            if name not in state:
                raise ModelError(
                    f"the model's files hold no tensor {name}: they are not complete, or name their tensors otherwise "
                    "(then --target general may read them)"
                )
            tensor, place = state[name], into[start : start + rows]
            if tensor.shape != place.shape:
                raise ModelError(
                    f"tensor {name} has shape {tuple(tensor.shape)}; the configuration asks for "
                    f"{tuple(place.shape)}: the model's files do not belong together"
                )
            place.copy_(tensor)
            start += rows

    return _build(shape, config, dtype, device, fill)


def random_weights(
    shape: LeanShape, config: Any, dtype: torch.dtype, device: torch.device | str, seed: int = 0
) -> LeanWeights:
    """Weights of the right shapes, drawn on `device`: norms are one, biases zero, the rest small numbers."""
    generator = torch.Generator(device).manual_seed(seed)

    def fill(into: Tensor, parts: _Parts) -> None:
        if into.dim() == 2:
            into.normal_(0.0, SPREAD, generator=generator)
        else:
            into.fill_(0.0 if parts[0][0].endswith("bias") else 1.0)

    return _build(shape, config, dtype, device, fill)


@torch.no_grad()
def _build(shape: LeanShape, config: Any, dtype: torch.dtype, device: torch.device | str, fill: _Fill) -> LeanWeights:
    def made(parts: _Parts, columns: int | None = None) -> Tensor:
        rows = sum(count for _, count in parts)
        into = torch.empty((rows,) if columns is None else (rows, columns), dtype=dtype, device=device)
        fill(into, parts)
        return into

    embed = made([("model.embed_tokens.weight", shape.vocabulary)], shape.hidden)
    layers = tuple(_layer(shape, f"model.layers.{index}.", made) for index in range(shape.layers))
    norm = made([("model.norm.weight", shape.hidden)])
    head = embed if shape.tied else made([("lm_head.weight", shape.vocabulary)], shape.hidden)
    return LeanWeights(embed, layers, norm, head, *rotary_tables(shape, config, dtype, device))


def _layer(shape: LeanShape, prefix: str, made: Callable[..., Tensor]) -> LayerWeights:
    hidden, width, kv, inner = shape.hidden, shape.query_width, shape.kv_width, shape.intermediate
    qkv = [("self_attn.q_proj", width), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv)]
    gate_up = [("mlp.gate_proj", inner), ("mlp.up_proj", inner)]

    def weight(parts: _Parts, columns: int | None = None) -> Tensor:
        return made([(f"{prefix}{name}.weight", rows) for name, rows in parts], columns)

    def bias(present: bool, parts: _Parts) -> Tensor | None:
        return made([(f"{prefix}{name}.bias", rows) for name, rows in parts]) if present else None

    return LayerWeights(
        input_norm=weight([("input_layernorm", hidden)]),
        qkv=weight(qkv, hidden),
        qkv_bias=bias(shape.qkv_bias, qkv),
        q_norm=weight([("self_attn.q_norm", shape.head_dim)]) if shape.qk_norm else None,
        k_norm=weight([("self_attn.k_norm", shape.head_dim)]) if shape.qk_norm else None,
        out=weight([("self_attn.o_proj", hidden)], width),
        out_bias=bias(shape.out_bias, [("self_attn.o_proj", hidden)]),
        mlp_norm=weight([("post_attention_layernorm", hidden)]),
        gate_up=weight(gate_up, hidden),
        gate_up_bias=bias(shape.mlp_bias, gate_up),
        down=weight([("mlp.down_proj", hidden)], inner),
        down_bias=bias(shape.mlp_bias, [("mlp.down_proj", hidden)]),
    )


def rotary_tables(
    shape: LeanShape, config: Any, dtype: torch.dtype, device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """cos and sin, each (C, D), from transformers' own class, so that scaling of positions is as the model's own.

    Raises ModelError for a configuration of the rotation that makes no sense.
    """
    wide = torch.promote_types(torch.float32, dtype)
    positions = torch.arange(shape.context_limit)[None]
    try:
        cos, sin = ROTARY[shape.name](config)(torch.empty(0, dtype=wide), positions)
    except Exception as error:  # transformers computes with whatever the configuration says
        raise ModelError(f"positions cannot be rotated as the configuration says: {error!r}") from error
    if not (cos.isfinite().all() and sin.isfinite().all()):
        raise ModelError(f"the configuration's rotation gives no numbers: {getattr(config, 'rope_parameters', None)}")
    return cos[0].to(device), sin[0].to(device)
