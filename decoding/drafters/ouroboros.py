"""Ouroboros (Zhao et al. 2024, Algorithm 1): a small model drafts by phrases, and the target improves the phrases.

Sentence draft (sec. 2.4)      the small model verifies the pool's phrases that begin with the last token, all in one
                               pass, until at least gamma tokens stand; its lookahead window adds new phrases
Longer drafts (sec. 2.2)       K newest phrases that begin with the draft's last token extend it, as one draft tree
Inspiration (sec. 2.5)         where beta - 1 tokens of the rejected part agree with the target, they and the target's
                               next token are a new phrase
Refinement (sec. 2.5)          the K used phrases are replaced by what the target wrote in their place
Warm start (sec. 2.6)          the pool outlives the answer. It belongs to one drafter, and so to one person

Figure 2's mask, for the small model and for the target, is that of a draft tree. The small model is any `DraftModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from decoding.draft_model import DraftModel
from decoding.drafter import DraftRequest, Observation
from decoding.growing_tree import GrowingTree, children_of, follow
from decoding.lookahead_window import LookaheadWindow
from decoding.tree import EMPTY, ROOT, DraftTree, limited
from decoding.verify import verify
from indexes.errors import SettingError
from indexes.phrase_pool import PhrasePool, Tail

DECAY = 0.85  # how likely the target agrees with one more token; the small model's own figure would cost a softmax


@dataclass(frozen=True, slots=True)
class OuroborosSettings:
    """Table 7's settings (those for MBPP with Yi-34b/6b, also of Table 4), and a switch for each part (Table 3).

    gamma     least tokens of a sentence draft
    phrases   W: most phrases per first token, and the columns of the small model's lookahead window unless given
    beta      tokens in a phrase, its first included
    suffixes  K: longer drafts verified together; 0 switches them off, and refinement with them
    window    columns of the lookahead window; 0 leaves the window out

    With fewer than gamma + K (beta - 1) nodes allowed, the sentence draft gets at most half. Raises SettingError for
    numbers that cannot be.
    """

    gamma: int = 6
    phrases: int = 18
    beta: int = 6
    suffixes: int = 3
    window: int | None = None
    phrase_drafting: bool = True
    inspiration: bool = True
    refinement: bool = True
    warm_start: bool = True

    def __post_init__(self) -> None:
        least = {"gamma": 1, "phrases": 1, "beta": 2, "suffixes": 0, "window": 0}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None and value < smallest:
                raise SettingError(f"{name} is {value}; it must be at least {smallest}")

    @property
    def columns(self) -> int:
        """Columns of the lookahead window."""
        return self.phrases if self.window is None else self.window


@dataclass(slots=True)
class OuroborosDrafter:
    """Drafts with a small model and a phrase pool. Where the text outgrows the small model, nothing is drafted."""

    likely: ClassVar[int] = 0
    model: DraftModel
    settings: OuroborosSettings = OuroborosSettings()
    pool: PhrasePool = field(init=False)
    _window: LookaheadWindow | None = None
    _prompt: tuple[int, ...] = ()
    _draft: tuple[int, ...] = ()
    _used: tuple[Tail, ...] = ()

    def __post_init__(self) -> None:
        self.pool = PhrasePool(self.settings.phrases)

    def start(self, request: DraftRequest) -> None:
        """Begin an answer, with the phrases of earlier ones if warm."""
        if not self.settings.warm_start:
            self.pool.reset()
        self._prompt = request.prompt
        self._window = LookaheadWindow(self.settings.columns, self.settings.beta, request.prompt)
        self._draft, self._used = (), ()

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The sentence draft, with suffixes from the pool below its end."""
        self._draft, self._used = (), ()
        if not self._prompt or max_nodes <= 0:
            return EMPTY
        self._draft = self._sentence([*self._prompt, *context], max_nodes)
        if not self._draft:
            return EMPTY
        self._used = tuple(self.pool.newest(self._draft[-1], self.settings.suffixes))
        grown = GrowingTree(max_nodes)
        end = grown.add_chain(ROOT, self._draft, DECAY, DECAY)
        for rank, tail in enumerate(self._used):
            grown.add_chain(end, tail, DECAY ** (len(self._draft) + 1) / (rank + 1), DECAY)
        return grown.tree()

    def _sentence(self, text: list[int], max_nodes: int) -> tuple[int, ...]:
        """At least gamma tokens, phrase by phrase, if so many may be verified (Algorithm 1)."""
        settings = self.settings
        roomy = max_nodes >= settings.gamma + settings.suffixes * (settings.beta - 1)
        gamma = settings.gamma if roomy or not settings.suffixes else min(settings.gamma, -(-max_nodes // 2))
        draft: list[int] = []
        while len(draft) < gamma and len(text) + len(draft) <= self.model.context_limit:
            draft += self._phrase([*text, *draft])
        most = max_nodes if roomy or not settings.suffixes else gamma
        return tuple(draft[:most])

    def _phrase(self, text: list[int]) -> tuple[int, ...]:
        """What one pass of the small model writes: the phrase that agrees longest, and one token more (eq. 5, 6)."""
        grown = GrowingTree(self.settings.phrases * self.settings.beta)
        if self.settings.phrase_drafting:
            for tail in self.pool.newest(text[-1], self.settings.phrases):
                grown.add_chain(ROOT, tail)
        grown.max_nodes += self.settings.columns * self.settings.beta
        if self._window:
            self._window.place(grown)
        deepest = self.model.context_limit - len(text)
        tree = limited(grown.tree(), grown.max_nodes, deepest, self.model.vocabulary)
        choices = self.model.choices(text, tree)
        if self._window:
            self._window.update(text[-1], tree, choices, self.pool)
        return verify(tree, choices).tokens if self.settings.phrase_drafting else (choices[0],)

    def observe(self, observed: Observation) -> None:
        """Improve the pool by what the target made of the last draft. A replayed record says nothing of it."""
        draft, used = self._draft, self._used
        self._draft, self._used = (), ()
        if observed.choices is None or not draft:
            return
        children = children_of(observed.tree)
        path = follow(children, ROOT, draft)
        if self.settings.inspiration:
            self._inspire(draft, path, len(observed.path), observed.choices)
        if self.settings.refinement and len(path) == len(draft):
            for tail in reversed(used):  # so that the newest stays the newest
                self._refine(draft[-1], tail, path[-1], follow(children, path[-1], tail), observed.choices)

    def _inspire(self, draft: Sequence[int], path: Sequence[int], accepted: int, choices: Sequence[int]) -> None:
        """Collect phrases from the discarded part of the sentence draft (Algorithm 1, candidate inspiration).

        written[i] is the target's own token at position i of the draft, given the draft before it.
        """
        written = [choices[0], *(choices[node + 1] for node in path)]
        agreed = [mine == its for mine, its in zip(draft, written, strict=False)]
        beta = self.settings.beta
        for start in range(accepted + 1, len(written) - beta + 1):
            if all(agreed[start : start + beta - 1]):
                self.pool.add(written[start : start + beta])

    def _refine(self, first: int, tail: Tail, end: int, path: Sequence[int], choices: Sequence[int]) -> None:
        """Replace a used phrase by the target's outputs in its place; one that was cut stays as it is."""
        if len(path) < len(tail):
            return
        self.pool.remove((first, *tail))
        self.pool.add((first, *(choices[node + 1] for node in (end, *path[:-1]))))

    def reset(self) -> None:
        """Drop the pool, the prompt, and the small model's reading of it."""
        self.pool.reset()
        self._window = None
        self._prompt, self._draft, self._used = (), (), ()
        self.model.reset()
