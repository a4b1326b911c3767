"""Forced decoding (llma Algorithm 2): the target computes every step in full, and says what was recorded.

Accept lengths are then those of a real model's answers, and times those of the target at hand, whatever its weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.recorded import Recorded
from benchmarks.simulate import accepted_path
from decoding.choices import choose
from decoding.drafter import Drafter, Observation
from decoding.lean.torch_target import LeanTarget
from decoding.tree import EMPTY, DraftTree, limited
from indexes.errors import SettingError


@dataclass(slots=True)
class Forced:
    """Sums over answers; the first token of each counts as given by its prefill.

    empty_steps are those without a draft; draft_s and verify_s are parts of decode_s, which leaves out the prefill.
    """

    tokens: int = 0
    steps: int = 0
    empty_steps: int = 0
    nodes: int = 0
    draft_s: float = 0.0
    verify_s: float = 0.0
    decode_s: float = 0.0


# Verifies a tree behind the last token, then keeps the nodes of a path.
Verify = Callable[[int, DraftTree], None]
Keep = Callable[[Sequence[int]], None]


def forced(
    drafter: Drafter | None, example: Recorded, max_nodes: int, sums: Forced, verify: Verify, keep: Keep
) -> None:
    """Write one answer, adding to `sums`. Without a drafter every step is plain."""
    answer = example.answer
    began = time.perf_counter()
    if drafter:
        drafter.start(example.request)
    sums.draft_s += time.perf_counter() - began
    done = 1
    while done < len(answer):
        start = time.perf_counter()
        tree = EMPTY
        if drafter:
            room = len(answer) - done - 1
            tree = limited(drafter.propose(answer[:done], max_nodes), max_nodes, room, 1 << 30)
        drafted = time.perf_counter()
        verify(answer[done - 1], tree)
        path = accepted_path(tree, answer[done:])
        keep(path)
        verified = time.perf_counter()
        tokens = answer[done : done + len(path) + 1]
        if drafter:
            drafter.observe(Observation(tree, tuple(path), tokens))
        done += len(tokens)
        sums.steps += 1
        sums.empty_steps += not len(tree)
        sums.nodes += len(tree)
        sums.draft_s += drafted - start
        sums.verify_s += verified - drafted
    sums.tokens += len(answer) - 1
    sums.decode_s += time.perf_counter() - began


def forced_on(
    target: LeanTarget, drafter: Drafter | None, examples: Sequence[Recorded], max_nodes: int, tick: Callable[[], None]
) -> Forced:
    """Write the answers of `examples` with a target; the drafter learns from answer to answer, as in an application."""
    sums = Forced()
    for example in examples:
        prompt = example.request.prompt

        def verify(last: int, tree: DraftTree, prompt: Sequence[int] = prompt) -> None:
            choose(target.forward(last, tree), tree, prompt)  # what the target would have chosen, read and dropped

        choose(target.prefill(prompt)[None], EMPTY, prompt)
        forced(drafter, example, max_nodes, sums, verify, target.keep)
        tick()
    return sums


def counted(drafter: Drafter, examples: Sequence[Recorded], max_nodes: int) -> Forced:
    """Steps and drafts of a drafter without any target; its times say nothing."""
    sums = Forced()
    for example in examples:
        forced(drafter, example, max_nodes, sums, lambda _, __: None, lambda _: None)
    return sums


def fitting(examples: Sequence[Recorded], vocabulary: int, context_limit: int, limit: int | None) -> list[Recorded]:
    """The first `limit` examples that the model can read. Raises SettingError when there are none, or for other ids."""
    found = [one for one in examples if 0 < len(one.request.prompt) < context_limit - len(one.answer)][:limit]
    if not found:
        raise SettingError(f"no recorded answer with references fits into a context of {context_limit} tokens")
    largest = max(max(max(one.request.prompt), max(one.answer)) for one in found)
    if largest >= vocabulary:
        raise SettingError(f"the tokenizer's ids reach {largest}, the shape's reach {vocabulary - 1}: choose another")
    return found
