"""Verification: which drafted nodes does the target model accept? Pure functions.

Greedy rule (ngram_trie sec. 3.3, LLMA Algorithm 1): walk from the root, at each node take the target's
choice; descend if it is a child, else emit it and stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decoding.tree import ROOT, DraftTree


@dataclass(frozen=True, slots=True)
class Verified:
    """The accepted nodes from the root downwards, and the tokens emitted: theirs, then the bonus token."""

    path: tuple[int, ...]
    tokens: tuple[int, ...]


def verify_greedy(tree: DraftTree, choices: Sequence[int]) -> Verified:
    """Accept the path that agrees with the target.

    `choices` (N + 1,) holds the target's next token after the root, then after each node.
    """
    child_of: dict[tuple[int, int], int] = {}
    for node, (parent, token) in enumerate(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)):
        child_of.setdefault((parent, token), node)
    path: list[int] = []
    node, tokens = ROOT, [choices[0]]
    while (node := child_of.get((node, tokens[-1]), ROOT)) != ROOT:
        path.append(node)
        tokens.append(choices[node + 1])
    return Verified(tuple(path), tuple(tokens))
