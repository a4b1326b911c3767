"""Lookahead decoding (Fu et al. 2023, Algorithm 2): n-grams from the target's own Jacobi iterations.

Each draft has two branches: candidates, n-grams of the pool that begin with the last token, and the lookahead window,
whose verification gives new n-grams. Both are one draft tree, so one forward pass serves both. The window lives in
`decoding.lookahead_window`, the pool in `indexes.phrase_pool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from decoding.drafter import DraftRequest, Observation
from decoding.growing_tree import GrowingTree
from decoding.lookahead_window import LookaheadWindow, window_shape
from decoding.tree import EMPTY, ROOT, DraftTree
from indexes.errors import SettingError
from indexes.phrase_pool import PhrasePool

CANDIDATE_PROB, DECAY = 0.5, 0.8


class LookaheadDrafter:
    """columns, n and candidates are the paper's W, N and G; the defaults are its settings for 7B models.

    They take (N - 1) W - 1 + G (N - 1) nodes. With fewer, the window gets half: fewer columns, then shorter n-grams.
    Raises SettingError for n below 2 and for columns or candidates below 1.
    """

    likely: ClassVar[int] = 0

    def __init__(self, columns: int = 15, n: int = 5, candidates: int = 15) -> None:
        for name, value, least in (("columns", columns, 1), ("n", n, 2), ("candidates", candidates, 1)):
            if value < least:
                raise SettingError(f"{name} is {value}; it must be at least {least}")
        self.columns = columns
        self.n = n
        self.candidates = candidates
        self.pool = PhrasePool(candidates)
        self._prompt: tuple[int, ...] = ()
        self._root: int | None = None
        self._window: LookaheadWindow | None = None
        self._window_nodes = self._made_for = 0

    def start(self, request: DraftRequest) -> None:
        """Begin with an empty pool; the window will begin with tokens of the prompt."""
        self.reset()
        self._prompt = request.prompt

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """Candidates first, newest first, then the window."""
        self._root = root = context[-1]
        if not self._prompt or max_nodes <= 0:
            return EMPTY
        window = self._window_for(max_nodes)
        grown = GrowingTree(max_nodes - min(self._window_nodes, self._share(max_nodes)))
        for rank, tail in enumerate(self.pool.newest(root, self.candidates)):
            grown.add_chain(ROOT, tail, CANDIDATE_PROB / (rank + 1), DECAY)
        grown.max_nodes = max_nodes
        window.place(grown)
        return grown.tree()

    def _window_for(self, max_nodes: int) -> LookaheadWindow:
        """The window of this answer, made anew when more nodes are allowed than ever before in it."""
        if self._window is None or max_nodes > self._made_for:
            self._made_for = max_nodes
            columns, n = window_shape(self.columns, self.n, self._share(max_nodes))
            self._window = LookaheadWindow(columns, n, self._prompt)
            self._window_nodes = max(0, (n - 1) * columns - 1)
        return self._window

    def _share(self, max_nodes: int) -> int:
        """The nodes that the window may have: half, or more if the candidates cannot fill theirs."""
        return max(max_nodes // 2, max_nodes - self.candidates * (self.n - 1))

    def observe(self, observed: Observation) -> None:
        """Take new n-grams from the target's choices in the window. A replayed record has none."""
        root, self._root = self._root, observed.tokens[-1]
        if observed.choices is not None and self._window is not None and root is not None:
            self._window.update(root, observed.tree, observed.choices, self.pool)

    def reset(self) -> None:
        """Drop pool and window."""
        self.pool.reset()
        self._prompt, self._root, self._window = (), None, None
        self._window_nodes = self._made_for = 0
