"""Fits the blend drafter's scorer to recorded answers: softmax cross-entropy over the candidates of every place.

The phrase stores that a place sees never hold its own answer: answers are dealt into parts, and each sees the counts of
the others. Some places see empty stores, so that the numbers hold for a first question too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.recorded import Recorded
from decoding.blend.features import COUNT, MAX_CANDIDATES, featurise
from decoding.blend.scorer import Scorer
from decoding.blend.session import EMITTED, MATCHES, emit, new_session
from decoding.blend.token_table import TokenTable
from indexes.ngram_counts import ORDERS, Array, NgramCounts, count_ngrams

HIDDEN, EPOCHS, BATCH, RATE, DECAY, PARTS = 24, 60, 512, 5e-3, 0.1, 4


@dataclass(frozen=True, slots=True)
class Places:
    """features (R, F) of all candidates, group (R,) the place of each, right (P,) the row of the true token or -1."""

    features: Array
    group: Array
    right: Array


def stores(examples: Sequence[Recorded], vocabulary: int) -> tuple[NgramCounts, NgramCounts]:
    """Counts over the answers, and over the documents, of examples."""
    answers = count_ngrams([example.answer for example in examples], vocabulary)
    documents = [reference.tokens for example in examples for reference in example.references]
    return answers, count_ngrams(documents, vocabulary)


def places(example: Recorded, table: TokenTable, answers: NgramCounts, passages: NgramCounts) -> Places:
    """Every place of an answer but its first, with the true words before it."""
    session = new_session(example.references, table, len(example.answer) + 1)
    slots = np.full(len(table), -1, np.int64)
    out = np.empty((MAX_CANDIDATES, COUNT), np.float32)
    candidates, best = np.empty(MAX_CANDIDATES, np.int64), np.empty(MAX_CANDIDATES, np.int64)
    rows, groups, right, total = [], [], [], 0
    for place in range(1, len(example.answer)):
        emit(session, np.asarray(example.answer[place - 1 : place], np.int64))
        known = min(ORDERS, int(session.cursor[EMITTED]))
        count = featurise(
            session, session.matched, session.lengths, session.cursor[MATCHES], session.recent, known, 0,
            answers, passages, slots, candidates, best, out,
        )  # fmt: skip
        rows.append(out[:count].copy())
        groups.append(np.full(count, place - 1))
        hit = np.flatnonzero(candidates[:count] == example.answer[place])
        right.append(total + int(hit[0]) if len(hit) else -1)
        total += count
    return Places(np.concatenate(rows), np.concatenate(groups), np.asarray(right))


def all_places(examples: Sequence[Recorded], table: TokenTable, seed: int) -> Places:
    """The places of all examples, once with both stores, once with one or both of them empty."""
    chooser = random.Random(seed)
    parts = folds(examples, PARTS, chooser)
    empty = count_ngrams([], len(table))
    found: list[Places] = []
    for inside in parts:
        outside = [one for index, one in enumerate(examples) if index not in inside]
        answers, passages = stores(outside, len(table))
        for index in inside:
            found.append(places(examples[index], table, answers, passages))
            fewer = chooser.choice([(empty, empty), (empty, passages), (answers, empty)])
            found.append(places(examples[index], table, *fewer))
    rows = np.cumsum([0, *(len(one.features) for one in found)])
    starts = np.cumsum([0, *(len(one.right) for one in found)])
    return Places(
        np.concatenate([one.features for one in found]),
        np.concatenate([one.group + start for one, start in zip(found, starts, strict=False)]),
        np.concatenate([np.where(one.right >= 0, one.right + row, -1) for one, row in zip(found, rows, strict=False)]),
    )


def fit(examples: Sequence[Recorded], table: TokenTable, seed: int = 0, epochs: int = EPOCHS) -> Scorer:
    """Fit a scorer to the answers of `examples`."""
    data = all_places(examples, table, seed)
    torch.manual_seed(seed)
    features, right = torch.from_numpy(data.features), torch.from_numpy(data.right)
    count = len(right)
    begins = torch.from_numpy(np.searchsorted(data.group, np.arange(count + 1)))
    net = torch.nn.Sequential(torch.nn.Linear(COUNT, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * -(-count // BATCH))
    for _ in range(epochs):
        for batch in torch.randperm(count).split(BATCH):  # type: ignore[no-untyped-call]
            sizes = begins[batch + 1] - begins[batch]
            offsets = torch.repeat_interleave(begins[batch] - torch.cumsum(sizes, 0) + sizes, sizes)
            chosen = offsets + torch.arange(len(offsets))
            scores = net(features[chosen])[:, 0]
            owner = torch.repeat_interleave(torch.arange(len(batch)), sizes)
            total = torch.zeros(len(batch)).index_add(0, owner, scores.clamp(max=20).exp())
            hits = right[batch]
            won = torch.where(hits >= 0, net(features[hits.clamp(min=0)])[:, 0], 0.0)
            loss = (torch.log1p(total) - won).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    weights, bias, out, last = (parameter.detach().numpy() for parameter in net.parameters())
    return Scorer(weights.copy(), bias.copy(), out[0].copy(), last.copy())


def folds(examples: Sequence[Recorded], number: int, chooser: random.Random | None = None) -> list[list[int]]:
    """The examples' indices, dealt by chance into `number` folds; conversations stay whole."""
    members: dict[str, list[int]] = {}
    for index, one in enumerate(examples):
        members.setdefault(one.conversation or str(index), []).append(index)
    order = list(members.values())
    (chooser or random.Random(0)).shuffle(order)
    return [sorted(index for indices in order[fold::number] for index in indices) for fold in range(number)]
