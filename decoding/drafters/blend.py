"""Our own drafter: one calibrated tree from all model-free sources at once (docs/decisions/0008).

References (passages, question, earlier turns), the answer so far, phrases of answers that this object has helped to
write, and n-grams of other passages compete in one heap by calibrated probability. It learns as it goes: which
passages are copied from, its own earlier answers, and a correction of its expectations.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from decoding.blend.scorer import SHIPPED, Scorer, load_scorer
from decoding.blend.search import search
from decoding.blend.session import LENGTH, Session, emit, new_session
from decoding.blend.token_table import TokenTable, plain_table
from decoding.drafter import DraftRequest, Observation, Reference
from decoding.tree import EMPTY, ROOT, DraftTree
from indexes.ngram_counts import NgramCounts, count_ngrams

REMEMBERED_ANSWERS = 64
_ROOM = 1024
_RATE, _MOST_SHIFT = 0.05, 1.0


class BlendDrafter:
    """table tells of spelling, passages of other texts; both may be missing. One object serves one person.

    answers seeds the phrase store; it is replaced as answers are written. Raises SettingError for a bad scorer file.
    """

    likely: ClassVar[int] = 0

    def __init__(
        self,
        table: TokenTable | None = None,
        passages: NgramCounts | None = None,
        answers: Iterable[Sequence[int]] = (),
        scorer: Scorer | Path = SHIPPED,
    ) -> None:
        self._scorer = load_scorer(scorer) if isinstance(scorer, Path) else scorer
        self._table = table or plain_table()
        self._nothing = count_ngrams([], len(self._table))
        self._passages = passages or self._nothing
        if len(self._passages.unigram) != len(self._table):  # the search looks tokens up in both, unchecked
            raise ValueError(f"counts over {len(self._passages.unigram)} tokens, a table of {len(self._table)}")
        self._seed = [tuple(answer) for answer in answers]
        self._slots = np.full(len(self._table), -1, np.int64)
        self._shift = 0.0
        self.reset()

    def start(self, request: DraftRequest) -> None:
        """Lay out the references, and count the phrases of the last answer."""
        if self._answer:
            self._remembered.append(tuple(self._answer))
            self._answers = count_ngrams(self._remembered, len(self._table))
        self._begin(request)

    def _begin(self, request: DraftRequest) -> None:
        self._answer: list[int] = []
        self._request = request
        self._session = new_session(request.references, self._table, _ROOM)
        self._slots.fill(-1)  # a search that ran out of memory leaves its marks

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The likeliest tree, likeliest path first; probs are calibrated probabilities that a node is accepted."""
        self._emit(context)
        if max_nodes <= 0 or not self._answer:
            return EMPTY
        found = search(self._session, self._answers, self._passages, self._scorer, self._shift, max_nodes, self._slots)
        return DraftTree(*found)

    def _emit(self, context: Sequence[int]) -> None:
        new = [token if 0 <= token < len(self._table) else 0 for token in context[len(self._answer) :]]
        if not new:
            return
        self._answer.extend(new)
        if self._session.cursor[LENGTH] + len(new) > len(self._session.tokens):
            self._session = new_session(self._request.references, self._table, 2 * len(self._answer) + _ROOM)
            new = self._answer
        emit(self._session, np.asarray(new, np.int64))

    def observe(self, observed: Observation) -> None:
        """Correct expectations: was one of the children accepted as often as their probabilities say?"""
        tree = observed.tree
        if not len(tree):
            return
        for node in (ROOT, *observed.path):
            children = tree.parents == node
            if children.any():
                above = tree.probs[node] if node != ROOT else 1.0
                expected = float(tree.probs[children].sum() / above) if above > 0 else 0.0
                accepted = any(tree.parents[other] == node for other in observed.path)
                self._shift += _RATE * (accepted - min(expected, 1.0))
        self._shift = min(max(self._shift, -_MOST_SHIFT), _MOST_SHIFT)

    def reset(self) -> None:
        """Forget all answers, and every correction."""
        self._shift = 0.0
        self._remembered: deque[tuple[int, ...]] = deque(self._seed, maxlen=max(REMEMBERED_ANSWERS, len(self._seed)))
        self._answers = count_ngrams(self._remembered, len(self._table)) if self._seed else self._nothing
        self._begin(DraftRequest(()))

    @property
    def session(self) -> Session:
        """What is known of the answer being written; for fitting the scorer."""
        return self._session


@functools.cache
def compile_blend() -> None:
    """Compile the search for this machine: some 20 s the first time, under one second ever after."""
    drafter = BlendDrafter()
    drafter.start(DraftRequest((0, 1), (Reference((0, 1)),)))
    drafter.propose((0, 1), 2)
