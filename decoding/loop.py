"""The one decode loop: draft, verify, accept, as an iterator of events.

Chat, command line and benchmarks all consume it. Everything that could make a drafted answer differ
from a plain one is cut here, once: stop tokens, the token limit and the context limit inside a draft.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import torch

from decoding.budget import EVERY_NODE, NodeBudget
from decoding.choices import choose
from decoding.drafter import Drafter, DraftRequest, Observation
from decoding.sampling import GREEDY, Sampling
from decoding.target import TargetModel
from decoding.tree import EMPTY, ROOT, DraftTree, Ints, limited
from decoding.verify import verify
from indexes.errors import ModelError, PromptTooLongError, SettingError

logger = logging.getLogger(__name__)

T = TypeVar("T")
FinishReason = Literal["stop", "length", "context", "cancelled"]


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """What to decode and when to end.

    max_nodes is the most draft nodes verified in one forward pass; 0 switches drafting off. budget decides below it,
    step by step; None verifies all that is proposed.
    sampling is how the target's words are chosen: greedily unless it says otherwise.
    cached is how many of the prompt's first tokens are in the target's cache already (less than all of them).
    """

    draft: DraftRequest
    max_new_tokens: int = 256
    stop_tokens: frozenset[int] = frozenset()
    max_nodes: int = 16
    sampling: Sampling = GREEDY
    budget: NodeBudget | None = None
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of the target: the tokens that it emitted (a stop token included).

    nodes and accepted count drafted nodes that were verified; sources are the references of the accepted ones.
    The first step of an answer is the prefill: no nodes, one token.
    """

    tokens: tuple[int, ...]
    nodes: int
    accepted: int
    sources: tuple[int, ...]
    draft_s: float
    duration_s: float


@dataclass(frozen=True, slots=True)
class Finished:
    """Why the answer ended, and the drafter's error if it had to be switched off on the way."""

    reason: FinishReason
    drafter_error: str | None = None


Event = Step | Finished


def never() -> bool:
    """The default for `cancelled`."""
    return False


@torch.inference_mode()
def _likely(logits: torch.Tensor, count: int) -> Ints | None:
    """The (N + 1, K) likeliest tokens after each row of `logits` (N + 1, V); costs nothing unless asked for."""
    if not count:
        return None
    likely: Ints = logits.topk(min(count, logits.shape[-1]), dim=-1).indices.cpu().numpy()
    return likely


class _GuardedDrafter:
    """Calls a drafter; one that raises is switched off for the rest of the answer, and said so."""

    def __init__(self, drafter: Drafter, request: DraftRequest) -> None:
        self._drafter = drafter
        self.error: str | None = None
        self._guard(lambda: drafter.start(request))

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int, vocabulary: int) -> DraftTree:
        """A tree that can be verified, whatever the drafter made of its own copy of the context."""
        if max_nodes <= 0 or max_depth <= 0:
            return EMPTY

        def draft() -> DraftTree:
            return limited(self._drafter.propose(tuple(context), max_nodes), max_nodes, max_depth, vocabulary)

        return self._guard(draft) or EMPTY

    def observe(self, observed: Observation) -> None:
        self._guard(lambda: self._drafter.observe(observed))

    @property
    def likely(self) -> int:
        """How many likeliest tokens to show it; whatever it says, a number that can be shown."""
        return self._guard(lambda: max(0, int(self._drafter.likely))) or 0

    def _guard(self, call: Callable[[], T]) -> T | None:
        if self.error is not None:
            return None
        try:
            return call()
        except Exception as error:  # a draft is a hint: whatever goes wrong in one costs time, never a token
            self.error = f"{type(error).__name__}: {error}"
            logger.warning("%s switched off for this answer: %s", type(self._drafter).__name__, self.error)
            return None


def _check(target: TargetModel, request: DecodeRequest) -> None:
    if request.max_new_tokens < 1:
        raise SettingError(f"max_new_tokens is {request.max_new_tokens}; it must be at least 1")
    length = len(request.draft.prompt)
    if not 0 < length < target.context_limit:
        raise PromptTooLongError(
            f"the prompt has {length} tokens; the model reads 1 to {target.context_limit - 1}: shorten it"
        )
    if not 0 <= request.cached < length:
        raise SettingError(f"cached is {request.cached}; of {length} tokens the last one is always read")


def decode(
    target: TargetModel, drafter: Drafter, request: DecodeRequest, cancelled: Callable[[], bool] = never
) -> Iterator[Event]:
    """Decode, yielding one `Step` per forward pass and `Finished` at the end.

    `cancelled` is asked before every forward pass, so a cancelled answer ends within one.
    Raises SettingError and PromptTooLongError before any work is done, and ModelError when the target's logits are no
    numbers.
    """
    _check(target, request)
    room = target.context_limit - len(request.draft.prompt)
    limit = min(request.max_new_tokens, room)
    emitted: list[int] = []
    guarded: _GuardedDrafter | None = None
    reason: FinishReason | None = None
    while reason is None:
        if cancelled():
            reason = "cancelled"
            break
        if guarded is None:
            step, guarded = _prefill(target, drafter, request)
        else:
            step = _step(target, guarded, request, emitted, limit)
        step, reason = _cut(step, request, limit - len(emitted), room)
        emitted.extend(step.tokens)
        yield step
    yield Finished(reason, guarded.error if guarded else None)


def _prefill(target: TargetModel, drafter: Drafter, request: DecodeRequest) -> tuple[Step, _GuardedDrafter]:
    """Read the prompt, and let the drafter prepare; its preparation counts as drafting."""
    start = time.perf_counter()
    guarded = _GuardedDrafter(drafter, request.draft)
    (request.budget or EVERY_NODE).start()
    drafted = time.perf_counter()
    logits = target.prefill(request.draft.prompt, request.cached)[None]
    token = choose(logits, EMPTY, request.draft.prompt, request.sampling)[0]
    return Step((token,), 0, 0, (), drafted - start, time.perf_counter() - start), guarded


def _step(
    target: TargetModel, drafter: _GuardedDrafter, request: DecodeRequest, emitted: list[int], limit: int
) -> Step:
    """Draft, verify, accept. A draft is cut so deep that its bonus token still is within the limit."""
    start = time.perf_counter()
    max_depth = limit - len(emitted) - 1
    budget = request.budget or EVERY_NODE
    proposed = drafter.propose(emitted, budget.ask(request.max_nodes), max_depth, target.vocabulary)
    tree = budget.choose(proposed)
    drafted = time.perf_counter()
    try:
        seen, logits = _verify(target, request, emitted, tree)
    except ModelError:
        if not len(tree):
            raise
        # A drafted token whose keys or values are no numbers spoils every row, for zero times NaN is NaN.
        seen, logits = _verify(target, request, emitted, EMPTY)
    target.keep(seen.path)
    sources = tuple(seen.tree.sources[list(seen.path)].tolist())
    drafter.observe(replace(seen, likely=_likely(logits, drafter.likely)))
    end = time.perf_counter()
    budget.observe(seen.tokens, drafted - start, end - drafted)
    return Step(seen.tokens, len(tree), len(seen.path), sources, drafted - start, end - start)


def _verify(
    target: TargetModel, request: DecodeRequest, emitted: list[int], tree: DraftTree
) -> tuple[Observation, torch.Tensor]:
    """One forward pass: what it showed, and its logits (N + 1, V). Raises ModelError when the target has no choice."""
    logits = target.forward(emitted[-1], tree)
    choices = choose(logits, tree, (*request.draft.prompt, *emitted), request.sampling)
    verified = verify(tree, choices)
    shown = list(choices.likeliest)
    for node, token in zip((ROOT, *verified.path), verified.tokens, strict=True):
        shown[node + 1] = token
    return Observation(tree, verified.path, verified.tokens, tuple(shown)), logits


def _cut(step: Step, request: DecodeRequest, remaining: int, room: int) -> tuple[Step, FinishReason | None]:
    """Cut a step after the first stop token, where plain decoding would have ended, and say why it ended."""
    for index, token in enumerate(step.tokens):
        if token in request.stop_tokens:
            accepted = min(step.accepted, index + 1)
            cut = replace(step, tokens=step.tokens[: index + 1], accepted=accepted, sources=step.sources[:accepted])
            return cut, "stop"
    if len(step.tokens) >= remaining:
        return step, "length" if request.max_new_tokens <= room else "context"
    return step, None
