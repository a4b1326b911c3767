"""What models of the Llama family differ in, as data: sizes, biases, norms. And which models are of that family.

Knows no tensor and no device. Everything that the lean forward pass does not compute is refused here, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indexes.errors import UnsupportedModelError

FULL = "full_attention"
ROPE_TYPES = ("default", "linear", "llama3", "yarn")  # one fixed rotation per position; the others depend on the length


@dataclass(frozen=True, slots=True)
class LeanShape:
    """The facts that the lean forward pass needs; widths and sizes are counts of numbers.

    name           the architecture, such as "llama"
    context_limit  C, the most tokens, prompt and answer together
    qk_norm        queries and keys are normalised per head before they are rotated
    tied           the embedding is the output head too
    stop_tokens    ids that end an answer, as the configuration says; a generation configuration may know more
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context_limit: int
    norm_eps: float
    qkv_bias: bool
    out_bias: bool
    mlp_bias: bool
    qk_norm: bool
    tied: bool
    stop_tokens: frozenset[int]

    @property
    def query_width(self) -> int:
        """Q, numbers in all query heads of a token."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """KV, numbers in all key heads of a token; as many in its value heads."""
        return self.kv_heads * self.head_dim


# The least that each size of a model may be.
SIZES = {
    "layers": 1, "hidden": 1, "heads": 1, "kv_heads": 1, "head_dim": 2, "intermediate": 1, "vocabulary": 1,
    "context_limit": 2,
}  # fmt: skip
LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class _Traits:
    """What the code of an architecture fixes (a bool), or leaves to a field of its configuration (its name)."""

    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    qk_norm: bool = False


FAMILY = {
    "llama": _Traits("attention_bias", "attention_bias", "mlp_bias"),
    "mistral": _Traits(),
    "qwen2": _Traits(qkv_bias=True),
    "qwen3": _Traits("attention_bias", "attention_bias", qk_norm=True),
}


def read_shape(config: Any) -> LeanShape:
    """Read a transformers configuration. Raises UnsupportedModelError, naming the reason, for any other model."""
    name: str = config.model_type
    if name not in FAMILY:
        raise UnsupportedModelError(f"{name} is not of the Llama family; the lean forward pass knows {_listed(FAMILY)}")
    if reason := _difference(config):
        raise UnsupportedModelError(f"the lean forward pass cannot compute this {name}: {reason}")
    traits = FAMILY[name]

    def has(trait: bool | str) -> bool:
        return bool(getattr(config, trait, False)) if isinstance(trait, str) else trait

    eos = config.eos_token_id
    return _checked(
        LeanShape(
            name=name,
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=_head_dim(config),
            intermediate=config.intermediate_size,
            vocabulary=config.vocab_size,
            context_limit=config.max_position_embeddings,
            norm_eps=config.rms_norm_eps,
            qkv_bias=has(traits.qkv_bias),
            out_bias=has(traits.out_bias),
            mlp_bias=has(traits.mlp_bias),
            qk_norm=traits.qk_norm,
            tied=bool(config.tie_word_embeddings),
            stop_tokens=frozenset([eos] if isinstance(eos, int) else eos or []),
        )
    )


def _checked(shape: LeanShape) -> LeanShape:
    """Raises UnsupportedModelError, naming the field, for sizes that no model has."""
    for name, least in SIZES.items():
        value = getattr(shape, name)
        if not isinstance(value, int) or not least <= value <= LARGEST:
            raise UnsupportedModelError(
                f"the configuration of this {shape.name} says {name} {value!r}; allowed are {least} to {LARGEST}"
            )
    return shape


def _difference(config: Any) -> str | None:
    """Why a model of a known architecture cannot be computed all the same; None if it can."""
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    kinds = set(getattr(config, "layer_types", None) or [])
    window = getattr(config, "sliding_window", None) if not kinds else None
    partial = rope.get("partial_rotary_factor") or getattr(config, "partial_rotary_factor", None) or 1.0
    if getattr(config, "quantization_config", None) is not None:
        return "its weights are quantized"
    if config.hidden_act != "silu":
        return f"hidden_act is {config.hidden_act}; supported is silu"
    if other := kinds - {FULL}:
        return f"it has layers of kind {_listed(other)}; supported is {FULL}"
    if window is not None:
        return f"it attends to a sliding window of {window} tokens only"
    if str(rope.get("rope_type")) not in ROPE_TYPES:
        return f"its positions are encoded as {rope.get('rope_type')}; supported are {_listed(ROPE_TYPES)}"
    if partial != 1.0:
        return f"it rotates a part of each head only ({partial})"
    if config.num_attention_heads % max(config.num_key_value_heads, 1) or _head_dim(config) % 2:
        return (
            f"{config.num_attention_heads} heads of {_head_dim(config)} do not share {config.num_key_value_heads} "
            "key heads evenly, or cannot be rotated"
        )
    return None


def _head_dim(config: Any) -> int:
    given: int | None = getattr(config, "head_dim", None)
    return given or int(config.hidden_size // max(config.num_attention_heads, 1))


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
