"""Fitting blend's scorer, on answers small enough to see through."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fitting
from benchmarks.fitting import PARTS, Places, all_places, fit, folds, places, stores
from benchmarks.recorded import Recorded
from decoding.blend.features import COUNT, FEATURES
from decoding.blend.scorer import Scorer, log_probabilities
from decoding.blend.token_table import TokenTable, plain_table
from decoding.drafter import Reference
from indexes.ngram_counts import ORDERS, NgramCounts, count_ngrams, find_row

TABLE = plain_table(60)
NOTHING = count_ngrams([], len(TABLE))


def copying(number: int) -> Recorded:
    """An answer that copies a run of its second document, which holds misleading bits of it too."""
    random = np.random.default_rng(number)
    told = tuple(random.integers(0, 60, 12).tolist())
    misleading = tuple(token for one in told for token in (one, int(random.integers(0, 60))))
    return Recorded((Reference(misleading), Reference(told)), told)


def loss(scorer: Scorer, data: Places) -> float:
    """Mean surprise at the true tokens, and at there being none among the candidates."""
    total = 0.0
    for place, right in enumerate(data.right.tolist()):
        rows = np.flatnonzero(data.group == place)
        logs = np.zeros(len(rows), np.float32)
        log_probabilities(scorer, data.features[rows], len(rows), 0.0, logs)
        chance = np.exp(logs[rows == right]) if right >= 0 else 1 - np.exp(logs).sum(keepdims=True)
        total -= float(np.log(np.maximum(chance, 1e-6)).sum())
    return total / len(data.right)


# Folds


def talks(sizes: list[int]) -> list[Recorded]:
    return [Recorded((), (1, 2), f"talk {talk}") for talk, size in enumerate(sizes) for _ in range(size)]


@given(st.lists(st.integers(1, 3), max_size=40), st.integers(1, 9), st.integers(0, 3))
def test_folds_partition_the_examples_and_keep_conversations_whole(sizes: list[int], number: int, seed: int) -> None:
    examples = talks(sizes)
    dealt = folds(examples, number, random.Random(seed))
    assert sorted(index for fold in dealt for index in fold) == list(range(len(examples)))
    held = [{examples[index].conversation for index in fold} for fold in dealt]
    assert (len(held), sum(map(len, held))) == (number, len(sizes))
    assert max(map(len, held)) - min(map(len, held)) <= 1
    assert dealt == folds(examples, number, random.Random(seed))


def test_folds_are_shuffled_and_examples_without_a_conversation_stand_alone() -> None:
    examples = [Recorded((), (1, 2))] * 40
    assert folds(examples, 2) != [list(range(0, 40, 2)), list(range(1, 40, 2))]
    assert folds(examples, 2, random.Random(1)) != folds(examples, 2)
    assert [len(fold) for fold in folds(examples, 2)] == [20, 20]


# Places


def test_a_place_holds_its_candidates_and_which_of_them_is_right() -> None:
    example = Recorded((Reference((1, 2, 3)), Reference((1, 4))), (1, 2, 9, 3))
    data = places(example, TABLE, NOTHING, NOTHING)
    # after 1: 2 and 4, 2 is right; after 1 2: 3, but 9 is right; after 9: nothing
    assert data.group.tolist() == [0, 0, 1]
    assert data.features.shape == (3, COUNT)
    assert data.right[1:].tolist() == [-1, -1]
    longest = data.features[:, FEATURES.index("best match in references")] * 12
    assert longest.tolist() == pytest.approx([1, 1, 2])
    right = data.features[data.right[0]]
    assert right[FEATURES.index("log count in documents")] == pytest.approx(np.log(2))
    assert data.right[0] in (0, 1)


def test_a_place_knows_only_the_words_before_it() -> None:
    example = Recorded((), (1, 2, 1, 2))
    data = places(example, TABLE, NOTHING, NOTHING)
    assert (data.group.tolist(), data.right.tolist()) == ([2], [-1, -1, 0])


def test_stores_hold_answers_and_documents_apart() -> None:
    answers, documents = stores([Recorded((Reference((1, 2)),), (3, 4)), Recorded((Reference((5, 6)),), (7, 8))], 60)
    assert [known(answers, context) for context in (1, 3, 5, 7)] == [False, True, False, True]
    assert [known(documents, context) for context in (1, 3, 5, 7)] == [True, False, True, False]


def known(counts: NgramCounts, context: int) -> bool:
    recent = np.full(ORDERS, -1, np.int64)
    recent[0] = context
    return bool(find_row(counts, recent, 1) >= 0)


def test_no_answer_and_no_document_is_in_the_counts_that_it_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [Recorded((Reference((2 * n, 59)),), (2 * n + 1, 58)) for n in range(9)]
    seen: list[tuple[int, int]] = []

    def watched(example: Recorded, table: TokenTable, answers: NgramCounts, passages: NgramCounts) -> Places:
        own = examples.index(example)
        assert not known(answers, 2 * own + 1)
        assert not known(passages, 2 * own)
        seen.append((own, sum(known(answers, 2 * n + 1) for n in range(9))))
        return places(example, table, answers, passages)

    monkeypatch.setattr(fitting, "places", watched)
    all_places(examples, TABLE, 0)
    assert sorted(own for own, _ in seen) == sorted([*range(9), *range(9)])
    least = 9 - -(-9 // PARTS)
    assert sum(others >= least for _, others in seen) >= 9  # everyone else but a part of the examples, once each


def test_places_of_all_examples_are_put_together_without_mixing_them() -> None:
    examples = [copying(number) for number in range(5)]
    examples[2] = Recorded(examples[2].references, (57, 58, *examples[2].answer, 57))
    data = all_places(examples, TABLE, 0)
    assert len(data.right) == 2 * sum(len(example.answer) - 1 for example in examples)
    assert (np.diff(data.group) >= 0).all()
    assert (data.right == -1).any()
    for place, row in enumerate(data.right.tolist()):
        assert row == -1 or data.group[row] == place


# Fitting


@pytest.fixture(scope="module")
def fitted() -> tuple[Scorer, Scorer]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    examples = [copying(number) for number in range(24)]
    scorers = fit(examples, TABLE, epochs=1), fit(examples, TABLE, epochs=60)
    torch.set_num_threads(threads)
    return scorers


def test_fitting_lowers_the_loss_on_answers_that_it_did_not_see(fitted: tuple[Scorer, Scorer]) -> None:
    fresh = [places(copying(number), TABLE, NOTHING, NOTHING) for number in range(100, 106)]
    early, late = (sum(loss(scorer, data) for data in fresh) / len(fresh) for scorer in fitted)
    assert late < early / 2


def test_a_fitted_scorer_prefers_the_candidate_that_matches_longest(fitted: tuple[Scorer, Scorer]) -> None:
    told = (3, 14, 15, 9, 26, 5)
    example = Recorded((Reference((50, 15, 40)), Reference(told)), told)
    data = places(example, TABLE, NOTHING, NOTHING)
    rows = np.flatnonzero(data.group == 2)  # after 3 14 15 comes 9 by three tokens, 40 by one
    logs = np.zeros(2, np.float32)
    log_probabilities(fitted[1], data.features[rows], len(rows), 0.0, logs)
    assert logs[rows == data.right[2]] > logs[rows != data.right[2]] + 1


def test_fitting_twice_gives_the_same_numbers(fitted: tuple[Scorer, Scorer]) -> None:
    again = fit([copying(number) for number in range(24)], TABLE, epochs=1)
    for one, other in zip(fitted[0], again, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_a_fitted_scorer_has_the_shapes_that_are_shipped(fitted: tuple[Scorer, Scorer]) -> None:
    units = len(fitted[1].bias)
    assert [array.shape for array in fitted[1]] == [(units, COUNT), (units,), (units,), (1,)]
    assert all(np.isfinite(array).all() for array in fitted[1])
