"""Shapes of well-known models, for timing without their weights: what a pass costs depends on nothing else."""

from __future__ import annotations

from typing import Any

from indexes.errors import SettingError

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

# Name: model type; layers, hidden, heads, key heads, intermediate, vocabulary, context; tied; the rest.
SHAPES: dict[str, tuple[str, tuple[int, int, int, int, int, int, int], bool, dict[str, Any]]] = {
    "llama-3.1-8b": (
        "llama", (32, 4096, 32, 8, 14336, 128256, 131072), False, {"rope_parameters": LLAMA3_ROPE, "rms_norm_eps": 1e-5}
    ),
    "qwen2.5-7b": ("qwen2", (28, 3584, 28, 4, 18944, 152064, 32768), False, {}),
    "qwen2.5-1.5b": ("qwen2", (28, 1536, 12, 2, 8960, 151936, 32768), True, {}),
    "smollm2-135m": ("llama", (30, 576, 9, 3, 1536, 49152, 8192), True, {"rms_norm_eps": 1e-5}),
    "tiny": ("llama", (2, 64, 4, 2, 128, 49152, 8192), True, {}),
}  # fmt: skip


def shape_config(name: str) -> Any:
    """The transformers configuration of a shape. Raises SettingError for an unknown name."""
    if name not in SHAPES:
        raise SettingError(f"unknown shape {name!r}; choose from {', '.join(SHAPES)}")
    from transformers import AutoConfig

    kind, sizes, tied, more = SHAPES[name]
    layers, hidden, heads, kv_heads, intermediate, vocabulary, context = sizes
    return AutoConfig.for_model(
        kind,
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=intermediate,
        vocab_size=vocabulary,
        max_position_embeddings=context,
        tie_word_embeddings=tied,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        **more,
    )
