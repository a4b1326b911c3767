"""Speculative decoding (Leviathan et al. 2023, sec. 2): a small model with the same vocabulary writes the draft.

A greedy chain of gamma tokens, one pass of the small model each. With `width` above 1 its next likeliest tokens hang
beside the chain: they cost the small model nothing, and the target a node each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from decoding.draft_model import DraftModel
from decoding.drafter import DraftRequest, Observation
from decoding.growing_tree import GrowingTree
from decoding.tree import EMPTY, ROOT, DraftTree
from indexes.errors import SettingError

LEAST_PROB = 1e-9  # a softmax may round to nothing


@dataclass(slots=True)
class DraftModelDrafter:
    """gamma is the paper's: most tokens in a chain. probs are path products of the small model's softmax.

    Where the text outgrows the small model's context, nothing is drafted. Raises SettingError for gamma or width
    below 1.
    """

    likely: ClassVar[int] = 0
    model: DraftModel
    gamma: int = 5
    width: int = 1
    _prompt: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("gamma", self.gamma), ("width", self.width)):
            if value < 1:
                raise SettingError(f"{name} is {value}; it must be at least 1")

    def start(self, request: DraftRequest) -> None:
        """Note the prompt; the small model reads it with the first draft."""
        self._prompt = request.prompt

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The chain, then the siblings, likeliest first."""
        if not self._prompt:
            return EMPTY
        text = [*self._prompt, *context]
        grown = GrowingTree(max_nodes)
        beside: list[tuple[float, int, int]] = []  # -prob, parent, token
        parent, path_prob = ROOT, 1.0
        for _ in range(min(self.gamma, max_nodes, self.model.context_limit - len(text) + 1)):
            tokens, probs = self.model.next_tokens(text, self.width)
            paths = [path_prob * min(1.0, max(LEAST_PROB, prob)) for prob in probs]
            beside.extend((-prob, parent, token) for prob, token in zip(paths[1:], tokens[1:], strict=True))
            path_prob = paths[0]
            parent = grown.add_chain(parent, tokens[:1], path_prob)
            text.append(tokens[0])
        for negative, above, token in sorted(beside):
            grown.add(above, token, -negative)
        return grown.tree()

    def observe(self, observed: Observation) -> None:
        """Nothing to learn: the small model reads the context."""

    def reset(self) -> None:
        """Forget the prompt, the small model's reading of it included."""
        self._prompt = ()
        self.model.reset()
