"""The window of lookahead decoding (Fu et al. 2023, "Break the sequential dependency of LLM inference using
lookahead decoding", sec. 3.1), as part of a draft tree.

W columns of N - 1 levels: the last N - 1 states of a Jacobi iteration over the next W positions. Level 0 is a text of
guesses that begins at the root; token (l, j) continues (l - 1, j). So level 0 is a chain from the root, column j hangs
below its j-th token, and depths and ancestors are just the positions and the mask of the paper. What the model
answers below a whole column completes an n-gram for the pool, and becomes the column's newest level.

The columns know each other only through level 0, so one that was not verified (the draft was cut) stays as it is.
Which model verifies it, the target (lookahead decoding) or a draft model (ouroboros sec. 2.4), it does not know.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from decoding.growing_tree import GrowingTree, children_of, follow
from decoding.tree import ROOT, DraftTree
from indexes.phrase_pool import PhrasePool

PROB = 0.01  # window nodes are there to learn from; one is accepted now and then


class LookaheadWindow:
    """`columns` is the paper's W, `n` its n-gram size N, at least 2. Level 0 begins with random tokens of `text`;
    without columns or text the window is empty.

    For the first N - 2 steps the levels fill up and no n-gram is complete. In each of these the text grows over the
    first column, so N - 2 columns more are there to begin with.
    """

    def __init__(self, columns: int, n: int, text: Sequence[int], seed: int = 0) -> None:
        self.n = n
        self._filling = n - 2
        self._columns: list[list[int]] = []
        if columns > 0 and text:
            guesses = random.Random(seed).choices(text, k=columns + n - 3)
            # Column 0 lacks its level 0, which is the root: the last token of the text so far.
            self._columns = [[], *([guess] for guess in guesses)]

    def place(self, tree: GrowingTree) -> None:
        """Add as many whole columns, from the root onwards, as there is room for."""
        above = ROOT
        for at, column in enumerate(self._columns):
            if len(column) > tree.room:
                return
            above = tree.add_chain(above, column[:1], PROB) if at else ROOT
            tree.add_chain(above, column[1:] if at else column, PROB)

    def update(self, root: int, tree: DraftTree, choices: Sequence[int], pool: PhrasePool) -> None:
        """Read the model's `choices` (N + 1,) after the root, the token `root`, and after each node of the tree."""
        children = children_of(tree)
        above, before = ROOT, [list(column) for column in self._columns]
        for at, column in enumerate(before):
            if at:
                head = children.get((above, column[0]))
                if head is None:
                    break
                above = head
            below = column[1:] if at else column
            path = follow(children, above, below)
            if len(path) < len(below):
                continue
            grown = [*([] if at else [root]), *column, choices[(path[-1] if path else above) + 1]]
            if len(grown) == self.n:
                pool.add(grown)
                grown = grown[1:]
            self._columns[at] = grown if at else grown[1:]
        if self._filling and self._columns[1:] and self._columns[1] != before[1]:
            self._filling -= 1
            self._columns = [self._columns[1][1:], *self._columns[2:]]


def window_shape(columns: int, n: int, max_nodes: int) -> tuple[int, int]:
    """The largest (W, N) up to the given whose (N - 1) W - 1 nodes fit into `max_nodes`; (0, N) if none is of use.

    Two columns are the fewest that look ahead. Long n-grams are given up before columns are fewer than four: an n-gram
    of two tokens still is a draft, but a window of one column sees only what the root itself will show.
    """
    for least in (4, 2):
        for size in range(n, 1, -1):
            fitting = min(columns, (max_nodes + 1) // (size - 1))
            if fitting >= min(least, columns):
                return fitting, size
    return 0, n
