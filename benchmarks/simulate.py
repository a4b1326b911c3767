"""Target-guided simulation (llma Algorithm 2): replay recorded answers of any model, without the model.

With greedy decoding accept lengths follow from the known answer and the drafts alone. The first token counts as given
by the prefill; each step emits the accepted tokens and one more.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.recorded import Recorded
from decoding.drafter import Drafter, DraftRequest, Observation
from decoding.tree import EMPTY, ROOT, DraftTree, chain, limited

BINS = 10


@dataclass(slots=True)
class Replayed:
    """Sums over answers.

    bins (10, 3): per tenth of predicted probability the number of nodes, the sum of predictions, and the accepted.
    """

    tokens: int = 0
    steps: int = 0
    nodes: int = 0
    reference_tokens: int = 0
    build_s: list[float] = field(default_factory=list)
    propose_s: list[float] = field(default_factory=list)
    bins: Any = field(default_factory=lambda: np.zeros((BINS, 3)))


def accepted_path(tree: DraftTree, coming: Sequence[int]) -> list[int]:
    """The nodes that agree with what the target is known to say."""
    child_of: dict[tuple[int, int], int] = {}
    for node, step in enumerate(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)):
        child_of.setdefault(step, node)
    path: list[int] = []
    for token in coming:
        node = child_of.get((path[-1] if path else ROOT, token), ROOT)
        if node == ROOT:
            break
        path.append(node)
    return path


def replay(drafter: Drafter, example: Recorded, max_nodes: int, sums: Replayed) -> None:
    """Replay one answer, adding to `sums`."""
    answer, request = example.answer, example.request
    began = time.perf_counter()
    drafter.start(request)
    sums.build_s.append(time.perf_counter() - began)
    sums.reference_tokens += len(request.prompt)
    sums.tokens += len(answer) - 1
    done = 1
    while done < len(answer):
        began = time.perf_counter()
        tree = drafter.propose(answer[:done], max_nodes)
        sums.propose_s.append(time.perf_counter() - began)
        tree = limited(tree, max_nodes, max_nodes, 1 << 30)
        path = accepted_path(tree, answer[done:])
        emitted = answer[done : done + len(path) + 1]
        drafter.observe(Observation(tree, tuple(path), emitted))
        done += len(emitted)
        sums.steps += 1
        sums.nodes += len(tree)
        _count(sums.bins, tree, path)


def _count(bins: Any, tree: DraftTree, path: list[int]) -> None:
    rows = np.minimum((tree.probs * BINS).astype(int), BINS - 1)
    accepted = np.zeros(len(tree))
    accepted[path] = 1
    np.add.at(bins, (rows, 0), 1)
    np.add.at(bins, (rows, 1), tree.probs)
    np.add.at(bins, (rows, 2), accepted)


@dataclass(slots=True)
class Oracle:
    """The ceiling for copying: knows the answer, and copies its best continuation from references or answer so far.

    A copy begins after any place where the last token stands, with `jump` anywhere, and ends where its text ends. It
    may be of any length: with at most 32 nodes, the ceiling on answers that quote at length is 2% lower.
    """

    answer: tuple[int, ...]
    jump: bool
    likely: int = 0
    _references: list[tuple[int, ...]] = field(default_factory=list)

    def start(self, request: DraftRequest) -> None:
        """Take the references."""
        self._references = [reference.tokens for reference in request.references]

    def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
        """The longest run that is right, whatever `max_nodes` is."""
        coming = self.answer[len(context) :]
        best = 0
        for text in (*self._references, tuple(context)):
            for begin in range(len(text)):
                if self.jump or (begin and text[begin - 1] == context[-1]):
                    pairs = zip(coming, text[begin:], strict=False)
                    best = max(best, sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
        return chain(coming[:best]) if best else EMPTY

    def observe(self, observed: Observation) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to drop."""


def calibration_error(bins: Any) -> float:
    """Expected calibration error: mean gap between predicted and accepted over bins, weighted by their nodes."""
    return float(np.abs(bins[:, 1] - bins[:, 2]).sum() / max(1, bins[:, 0].sum()))


def figures(name: str, data: str, examples: int, max_nodes: int, sums: Replayed) -> dict[str, Any]:
    """The line of a table."""
    propose = sorted(sums.propose_s)
    return {
        "drafter": name,
        "data": data,
        "examples": examples,
        "max_nodes": max_nodes,
        "tokens_per_step": round(sums.tokens / max(1, sums.steps), 3),
        "nodes_per_step": round(sums.nodes / max(1, sums.steps), 1),
        "build_ms": round(1000 * statistics.mean(sums.build_s), 3),
        "build_ms_per_1000_tokens": round(1e6 * sum(sums.build_s) / max(1, sums.reference_tokens), 3),
        "propose_ms_median": round(1000 * statistics.median(propose), 3),
        "propose_ms_p99": round(1000 * propose[int(0.99 * (len(propose) - 1))], 3),
    }


def run(
    make: Callable[[int, Recorded], Drafter], examples: Sequence[Recorded], max_nodes: int, tick: Callable[[], None]
) -> Replayed:
    """Replay every example with the drafter that `make` gives for it."""
    sums = Replayed()
    for index, example in enumerate(examples):
        replay(make(index, example), example, max_nodes, sums)
        tick()
    return sums
