"""What can be known of a model's architecture before its first answer, and why some cannot verify draft trees.

What architectures differ in is data here: the kinds of their layers, their window, their context limit. Whatever a
configuration does not tell, `check_reads_trees` finds out by trying. Knows no cache and no drafter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from decoding import attention
from decoding.target import TargetModel
from decoding.tree import make_tree
from indexes.errors import UnsupportedModelError

FULL, SLIDING = "full_attention", "sliding_attention"

# Seeing a sibling moves the logits of a small trained model by 0.19 to 2.3 of their spread, 16-bit rounding by 0.007.
TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class Architecture:
    """The facts that `HuggingFaceTarget` needs.

    kinds   the kinds of layers, if the model takes one mask per kind; else empty
    window  how many tokens a sliding layer sees, itself included; None without such layers
    """

    name: str
    kinds: frozenset[str]
    window: int | None
    layers: int
    vocabulary: int
    context_limit: int


def read_architecture(model: PreTrainedModel) -> Architecture:
    """Read a model's configuration. Raises UnsupportedModelError, naming the reason, for what cannot work."""
    config = model.config.get_text_config(decoder=True)
    name: str = config.model_type
    if model.config.is_encoder_decoder:
        raise UnsupportedModelError(f"{name} has an encoder; only decoder-only models are supported")
    kinds = frozenset(getattr(config, "layer_types", None) or [])
    if other := kinds - {FULL, SLIDING}:
        raise UnsupportedModelError(
            f"{name} has layers of kind {', '.join(sorted(other))}, whose state cannot be cut back "
            f"to an accepted path; supported are {FULL} and {SLIDING}"
        )
    window = getattr(config, "sliding_window", None)
    if kinds and SLIDING not in kinds:
        window = None
    return Architecture(name, kinds, window, config.num_hidden_layers, config.vocab_size, _context_limit(config))


def _context_limit(config: Any) -> int:
    """The most tokens that the model reads with one and the same rotation of positions.

    "longrope" turns every position differently once the text outgrows the original length: a draft that reaches
    over it would change the tokens before it, and keys in the cache would no longer fit. Such a model ends there.
    """
    limit: int | None = getattr(config, "max_position_embeddings", None)
    if limit is None:
        raise UnsupportedModelError(
            f"the configuration of {config.model_type} has no max_position_embeddings: its context limit is not known"
        )
    parameters = getattr(config, "rope_parameters", None) or {}
    for rope in [parameters, *parameters.values()]:
        if isinstance(rope, dict) and rope.get("rope_type") == "longrope":
            limit = min(limit, rope["original_max_position_embeddings"])
    return limit


def use_tree_attention(model: PreTrainedModel) -> None:
    """Make a model attend through `attention.tree_attention`. Raises UnsupportedModelError if it cannot."""
    name = attention.register()
    try:
        model.set_attn_implementation(name)
    except ValueError as error:
        raise UnsupportedModelError(f"{model.config.model_type} cannot take a tree mask: {error}") from error
    if model.config.get_text_config(decoder=True)._attn_implementation != name:
        raise UnsupportedModelError(
            f"{model.config.model_type} does not use transformers' attention interface, so it cannot take a tree mask"
        )


def check_reads_trees(target: TargetModel, name: str) -> None:
    """Read a tree in which one token stands twice below the root, with others between: both must mean the same.

    They do not when a model leaves the mask or the positions aside, or keeps a state besides keys and values.
    Raises UnsupportedModelError, naming the reason. The cache is empty afterwards.
    """
    size = target.vocabulary
    tree = make_tree([size // 2, size // 3, size // 5, size // 2], [-1, -1, -1, -1])
    try:
        target.prefill([size // 7])
        logits = target.forward(size // 11, tree).double()
        target.keep([3])
    except UnsupportedModelError:
        raise
    except Exception as error:  # whatever a model's own code raises on input that it was not made for
        raise UnsupportedModelError(f"{name} cannot read a draft tree: {type(error).__name__}: {error}") from error
    first, again = logits[1], logits[4]
    if not float((first - again).norm()) <= TOLERANCE * float((first - first.mean()).norm()):
        raise UnsupportedModelError(
            f"{name} reads a draft tree as if it were a text: it leaves aside the mask or the positions, "
            "or keeps a state that cannot be cut back"
        )
    target.truncate(0)
