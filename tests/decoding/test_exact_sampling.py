"""Drafted sampling has exactly the target's distribution, whatever is drafted: chi-square tests on a small vocabulary.

100,000 answers of three tokens per shape of the draft, with a target whose logits depend on the last two tokens. The
answers come from the functions that the decode loop calls (`warped`, `noise`, `draw`, `verify`), for many answers at
once. A verifier that is biased on purpose has to fail the same test, or the test would show nothing.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency, chisquare

from decoding.choices import read_before
from decoding.sampling import Sampling, draw, noise, noise_width, warped
from decoding.tree import EMPTY, DraftTree, Floats, Ints, depths, make_tree
from decoding.verify import verify

V = 5
WIDTH = noise_width(V)
LENGTH = 3
DRAWS = 100_000
PROMPT = (2, 0)
Answer = tuple[int, ...]
Verifier = Callable[[DraftTree, torch.Tensor, Floats], Iterator[tuple[Answer, Ints]]]

# LOGITS[a, b] (V,) after tokens a, b
LOGITS = torch.randn(V, V, V, generator=torch.Generator().manual_seed(1)).double() * 1.2

SETTINGS = {
    "temperature 1": Sampling(temperature=1.0),
    "warped": Sampling(temperature=1.6, top_p=0.85, top_k=5, min_p=0.05, repetition_penalty=1.3),
}


def shape(*nodes: tuple[int, int]) -> DraftTree:
    """A tree of (parent, token)."""
    return make_tree([token for _, token in nodes], [parent for parent, _ in nodes])


def wide(tokens: list[int], depth: int) -> DraftTree:
    """Every path of so many of these tokens."""
    tree: list[tuple[int, int]] = []
    level = [-1]
    for _ in range(depth):
        start = len(tree)
        tree += [(parent, token) for parent in level for token in tokens]
        level = list(range(start, len(tree)))
    return shape(*tree)


SHAPES = {
    "duplicated children": shape((-1, 3), (-1, 3), (0, 1), (1, 1), (1, 4), (1, 4), (0, 4), (2, 2), (3, 2), (-1, 3)),
    "wide, every path of two": wide([3, 0, 4, 2, 1], 2),
    "two of five tokens, three deep": wide([4, 1], 3),
    "deep chain": shape(*((at - 1, at * 3 % V) for at in range(6))),
    "always the likeliest": EMPTY,  # made in `drafted`
    "all wrong": EMPTY,  # likewise: only tokens that cannot be drawn, or hardly
    "unsorted, scattered": shape((-1, 4), (0, 2), (-1, 1), (0, 0), (2, 4), (-1, 0), (1, 1), (4, 3), (5, 4), (2, 2)),
}  # fmt: skip


# One seed would give every shape the same answers, and so the same chi-square: they are the plain ones.
SEEDS = {name: 11 + at for at, name in enumerate(["plain", *SHAPES])}


def drafted(name: str, context: Answer, sampling: Sampling) -> DraftTree:
    """The draft after a context."""
    if name not in ("always the likeliest", "all wrong"):
        return SHAPES[name]
    tokens: list[int] = []
    for _ in range(LENGTH):
        order = torch.argsort(probabilities(context + tuple(tokens), sampling), descending=name != "all wrong")
        tokens.append(int(order[0]))
    return shape(*((at - 1, token) for at, token in enumerate(tokens)))


def logits_after(context: Answer, tree: DraftTree) -> torch.Tensor:
    """(N + 1, V) what the target says to a tree."""
    texts = [context]
    for parent, token in zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True):
        texts.append((*texts[parent + 1], token))
    return torch.stack([LOGITS[text[-2], text[-1]] for text in texts])


def probabilities(context: Answer, sampling: Sampling) -> torch.Tensor:
    """(V,) what plain sampling draws from."""
    before = torch.from_numpy(read_before(EMPTY, context))
    return warped(logits_after(context, EMPTY), before, sampling)[0].softmax(-1)


def exact(sampling: Sampling) -> dict[Answer, float]:
    """The probability of every answer, from the chain rule."""
    found: dict[Answer, float] = {}
    for answer in itertools.product(range(V), repeat=LENGTH):
        chance = 1.0
        for at, token in enumerate(answer):
            chance *= float(probabilities(PROMPT + answer[:at], sampling)[token])
        found[answer] = chance
    return found


def by_rule(tree: DraftTree, scores: torch.Tensor, gumbel: Floats) -> Iterator[tuple[Answer, Ints]]:
    """What a pass emits for draws with noise `gumbel` (D, depths, 2, width): tokens, and which draws emit them."""
    at = np.concatenate([[0], depths(tree)])
    rows = [draw(row.expand(len(gumbel), -1), torch.from_numpy(gumbel[:, at[i]])) for i, row in enumerate(scores)]
    kinds, kind_of = np.unique(torch.stack(rows, 1).numpy(), axis=0, return_inverse=True)
    for kind, choices in enumerate(kinds.tolist()):
        yield verify(tree, choices).tokens, np.flatnonzero(kind_of == kind)


def by_lookups_of_their_own(tree: DraftTree, scores: torch.Tensor, gumbel: Floats) -> Iterator[tuple[Answer, Ints]]:
    """The bias to be found: each child is tried with a draw of its own, so drafted tokens get too many chances."""
    random = np.random.default_rng(0)
    chances = scores.softmax(-1).numpy()
    children = {parent: np.flatnonzero(tree.parents == parent) for parent in range(-1, len(tree))}
    for at in range(len(gumbel)):
        node, tokens = -1, []
        while True:
            for child in children[node].tolist():
                if random.random() < chances[node + 1, tree.tokens[child]]:
                    break
            else:
                break
            node = child
            tokens.append(int(tree.tokens[child]))
        yield (*tokens, int(random.choice(V, p=chances[node + 1]))), np.array([at])


def by_one_noise_for_all_depths(tree: DraftTree, scores: torch.Tensor, gumbel: Floats) -> Iterator[tuple[Answer, Ints]]:
    """Another bias: every token alone is right, but successive ones are not independent."""
    yield from by_rule(tree, scores, np.repeat(gumbel[:, :1], gumbel.shape[1], axis=1))


@functools.cache
def answers(name: str, sampling: Sampling, seed: int, count: int, verifier: Verifier) -> Counter[Answer]:
    """How often each answer of three tokens comes out; with "plain", one token per pass."""
    stride = 10  # no draft is deeper: every answer has positions, and so noise, of its own
    gumbel = noise(seed, 0, count * stride, WIDTH).reshape(count, stride, 2, WIDTH)
    found: Counter[Answer] = Counter()
    waiting: dict[Answer, Ints] = {(): np.arange(count)}
    while waiting:
        answer, draws = waiting.popitem()
        if len(answer) >= LENGTH:
            found[answer[:LENGTH]] += len(draws)
            continue
        context = PROMPT + answer
        tree = EMPTY if name == "plain" else drafted(name, context, sampling)
        scores = warped(logits_after(context, tree), torch.from_numpy(read_before(tree, context)), sampling)
        for tokens, which in verifier(tree, scores, gumbel[draws, len(answer) :]):
            more = answer + tokens
            waiting[more] = np.concatenate([waiting.get(more, np.empty(0, np.int64)), draws[which]])
    return found


def p_value(found: Counter[Answer], expected: dict[Answer, float]) -> float:
    """Chi-square against exact probabilities; answers that are expected less than five times count together."""
    assert all(expected[answer] > 0 for answer in found), "an answer that cannot be"
    total = sum(found.values())
    common = [answer for answer, chance in expected.items() if chance * total >= 5]
    seen = [found[answer] for answer in common]
    wanted = [expected[answer] * total for answer in common]
    rest = total - sum(wanted)
    if rest > 1e-6 * total:
        seen.append(total - sum(seen))
        wanted.append(rest)
    return float(chisquare(seen, np.array(wanted) * (sum(seen) / sum(wanted))).pvalue)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", ["plain", *SHAPES])
def test_the_distribution_of_drafted_answers_is_the_target_s(name: str, settings: str) -> None:
    sampling = SETTINGS[settings]
    found = answers(name, sampling, SEEDS[name], DRAWS, by_rule)
    assert sum(found.values()) == DRAWS
    assert p_value(found, exact(sampling)) > 0.001


@pytest.mark.parametrize("name", SHAPES)
def test_drafted_answers_cannot_be_told_from_plain_ones_with_another_seed(name: str) -> None:
    sampling = SETTINGS["warped"]
    drafted_counts = answers(name, sampling, SEEDS[name], DRAWS, by_rule)
    plain_counts = answers("plain", sampling, SEEDS["plain"], DRAWS, by_rule)
    both = [answer for answer in drafted_counts | plain_counts if drafted_counts[answer] + plain_counts[answer] >= 10]
    table = [[counts[answer] for answer in both] for counts in (drafted_counts, plain_counts)]
    assert chi2_contingency(table).pvalue > 0.001


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_with_the_same_seed_every_drafted_answer_is_the_plain_one(name: str, settings: str) -> None:
    sampling = SETTINGS[settings]
    assert answers(name, sampling, 13, 5_000, by_rule) == answers("plain", sampling, 13, 5_000, by_rule)


def test_tokens_outside_the_nucleus_are_among_those_drafted() -> None:
    sampling = SETTINGS["warped"]
    first = drafted("all wrong", PROMPT, sampling).tokens[0]
    assert probabilities(PROMPT, sampling)[first] == 0


@pytest.mark.parametrize("name", ["duplicated children", "two of five tokens, three deep", "unsorted, scattered"])
def test_the_test_finds_a_verifier_whose_siblings_are_looked_up_independently(name: str) -> None:
    sampling = SETTINGS["temperature 1"]
    assert p_value(answers(name, sampling, 11, 20_000, by_lookups_of_their_own), exact(sampling)) < 1e-9


@pytest.mark.parametrize("name", ["wide, every path of two", "deep chain"])
def test_the_test_finds_noise_that_is_the_same_at_every_depth(name: str) -> None:
    sampling = SETTINGS["temperature 1"]
    found = answers(name, sampling, 11, 20_000, by_one_noise_for_all_depths)
    assert p_value(found, exact(sampling)) < 1e-9
