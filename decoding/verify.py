"""Verification: which drafted nodes does the target model accept? Pure functions.

The rule (ngram_trie sec. 3.3, LLMA Algorithm 1): walk from the root, at each node take the target's choice; descend
if it is a child, else emit it and stop. Whether the choices are the likeliest tokens or draws is none of its business:
for drafts that are no random draws the same walk is exact (decoding.sampling says why).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from decoding.tree import ROOT, DraftTree


@dataclass(frozen=True, slots=True)
class Verified:
    """The accepted nodes from the root downwards, and the tokens emitted: theirs, then the bonus token."""

    path: tuple[int, ...]
    tokens: tuple[int, ...]


class Chosen(Protocol):
    """(N + 1,) the target's next token after the root, then after each node."""

    def __getitem__(self, row: int, /) -> int:
        """The token of a row."""


def verify(tree: DraftTree, choices: Chosen) -> Verified:
    """Accept the path that agrees with the target; only the choices on that path are looked up."""
    child_of: dict[tuple[int, int], int] = {}
    for node, (parent, token) in enumerate(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)):
        child_of.setdefault((parent, token), node)
    path: list[int] = []
    node, tokens = ROOT, [choices[0]]
    while (node := child_of.get((node, tokens[-1]), ROOT)) != ROOT:
        path.append(node)
        tokens.append(choices[node + 1])
    return Verified(tuple(path), tuple(tokens))
