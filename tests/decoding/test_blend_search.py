"""The search for the likeliest tree, against an expansion of every path."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from decoding.blend.features import COUNT, MAX_CANDIDATES, featurise
from decoding.blend.scorer import Scorer, log_probabilities
from decoding.blend.search import CHILDREN, search
from decoding.blend.session import EMITTED, MATCHES, MAX_MATCHES, Session, matches_after
from decoding.blend.token_table import plain_table
from decoding.tree import ROOT, DraftTree, best_chain_first, depths
from indexes.ngram_counts import ORDERS, NgramCounts, count_ngrams
from tests.decoding.blending import ANSWER, TEXTS, VOCABULARY, begun, random_scorer, scorer_of

NOTHING = count_ngrams([], VOCABULARY)
Texts = Sequence[Sequence[int]]
STARTED = ANSWER.filter(bool)
SEEDS = st.integers(0, 50)


def drafted(session: Session, most: int, scorer: Scorer, answers: Texts = ()) -> DraftTree:
    vocabulary = len(session.newest)
    slots = np.full(vocabulary, -1, np.int64)
    counts = count_ngrams(answers, vocabulary)
    found = search(session, counts, count_ngrams([], vocabulary), scorer, 0.0, most, slots)
    assert (slots == -1).all()
    return DraftTree(*found)


def paths(tree: DraftTree) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        found.append((*found[parent], token) if parent != ROOT else (token,))
    return found


def children(session: Session, path: tuple[int, ...], scorer: Scorer, answers: NgramCounts) -> list[tuple[int, float]]:
    """The CHILDREN likeliest tokens after a path, with their log probabilities."""
    count, matched, lengths = int(session.cursor[MATCHES]), session.matched, session.lengths
    for token in path:
        longer, longer_lengths = np.zeros(MAX_MATCHES, np.int64), np.zeros(MAX_MATCHES, np.int64)
        count = matches_after(session, matched, lengths, count, token, longer, longer_lengths)
        matched, lengths = longer, longer_lengths
    recent = np.r_[path[::-1], session.recent].astype(np.int64)[:ORDERS]
    known = min(ORDERS, int(session.cursor[EMITTED]) + len(path))
    candidates, places = np.zeros(MAX_CANDIDATES, np.int64), np.zeros(MAX_CANDIDATES, np.int64)
    features, logs = np.zeros((MAX_CANDIDATES, COUNT), np.float32), np.zeros(MAX_CANDIDATES, np.float32)
    found = featurise(
        session, matched, lengths, count, recent, known, len(path), answers, NOTHING,
        np.full(VOCABULARY, -1, np.int64), candidates, places, features,
    )  # fmt: skip
    log_probabilities(scorer, features, found, 0.0, logs)
    ranked = sorted(zip(candidates[:found].tolist(), logs[:found].tolist(), strict=True), key=lambda pair: -pair[1])
    return ranked[:CHILDREN]


def every_path(session: Session, depth: int, scorer: Scorer, answers: Texts) -> dict[tuple[int, ...], float]:
    """The log probability of each path of up to `depth` tokens, down to the least that is worth a node."""
    counts = count_ngrams(answers, VOCABULARY)
    found: dict[tuple[int, ...], float] = {}
    stack: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    while stack:
        path, above = stack.pop()
        for token, log in children(session, path, scorer, counts):
            if above + log >= -8:
                found[(*path, token)] = above + log
                if len(path) + 1 < depth:
                    stack.append(((*path, token), above + log))
    return found


@given(TEXTS, STARTED, SEEDS, st.integers(1, 5), TEXTS)
def test_the_tree_holds_the_likeliest_of_all_paths(
    references: list[list[int]], answer: list[int], seed: int, most: int, answers: list[list[int]]
) -> None:
    session, scorer = begun(references, answer), random_scorer(seed)
    expected = every_path(session, most, scorer, answers)
    assume(all(abs(log + 8) > 1e-3 for log in expected.values()))
    tree = drafted(session, most, scorer, answers)
    assert dict(zip(paths(tree), tree.probs.tolist(), strict=True)) == pytest.approx(
        {path: math.exp(expected[path]) for path in paths(tree)}, rel=1e-4
    )
    best = sorted(expected.values(), reverse=True)[:most]
    assert sorted(np.log(tree.probs).tolist(), reverse=True) == pytest.approx(best, abs=1e-4)


@given(TEXTS, STARTED, SEEDS, st.integers(0, 40), TEXTS)
def test_a_tree_is_depth_first_with_distinct_siblings_and_falling_probabilities(
    references: list[list[int]], answer: list[int], seed: int, most: int, answers: list[list[int]]
) -> None:
    tree = drafted(begun(references, answer), most, random_scorer(seed), answers)
    assert len(tree) <= most
    found = paths(tree)
    assert len(set(found)) == len(found)
    assert best_chain_first(tree) is tree  # depth first already, likeliest child first
    for node, parent in enumerate(tree.parents.tolist()):
        assert 0 < tree.probs[node] <= (1 if parent == ROOT else tree.probs[parent]) + 1e-6


@given(TEXTS, STARTED, SEEDS, st.integers(1, 20))
def test_a_smaller_tree_is_part_of_a_larger_one(
    references: list[list[int]], answer: list[int], seed: int, most: int
) -> None:
    session, scorer = begun(references, answer), random_scorer(seed)
    small, large = drafted(session, most, scorer), drafted(session, 2 * most, scorer)
    probs = dict(zip(paths(large), large.probs.tolist(), strict=True))
    for path, prob in zip(paths(small), small.probs.tolist(), strict=True):
        assert probs[path] == prob


@given(TEXTS, STARTED, SEEDS)
def test_a_node_s_source_holds_its_token_after_a_token_of_the_same_word(
    references: list[list[int]], answer: list[int], seed: int
) -> None:
    tree = drafted(begun(references, answer), 12, random_scorer(seed))
    for path, source in zip(paths(tree), tree.sources.tolist(), strict=True):
        before = [*answer, *path][-2] // 2
        pairs = [
            (one // 2, two)
            for text in (references[source : source + 1] if source >= 0 else [answer])
            for one, two in itertools.pairwise(text)
        ]
        assert (before, path[-1]) in pairs
        if source < 0:  # only what no reference offers is said to come from none
            assert all((before, path[-1]) not in zip([t // 2 for t in r], r[1:], strict=False) for r in references)


def test_a_draft_goes_on_to_the_end_of_its_reference_and_no_further() -> None:
    # the score is -9 or 9 for all: what follows a match is nearly sure
    sure = scorer_of({"follows a match": 18.0}, last=-9.0)
    tree = drafted(begun([[0, 2, 4, 6], [1, 3]], [0, 2]), 8, sure)
    assert paths(tree) == [(4,), (4, 6)]
    assert tree.sources.tolist() == [0, 0]


def test_paths_that_are_unlikely_get_no_node() -> None:
    for last, nodes in ((-7.9, 1), (-8.1, 0)):
        assert len(drafted(begun([[0, 2]], [0]), 8, scorer_of({}, last))) == nodes


def test_no_node_has_more_children_than_sixteen() -> None:
    table = plain_table(100)
    text = [token for follower in range(1, 41) for token in (0, follower)]
    tree = drafted(begun([text], [0], table), 80, scorer_of({}, 0.0))
    assert (tree.parents == ROOT).sum() == CHILDREN == 16


def test_earlier_answers_are_drafted_from_where_nothing_matches() -> None:
    likely = scorer_of({"probability after earlier answers": 20.0}, last=-5.0)
    tree = drafted(begun([], [0]), 2, likely, [[0, 2, 4, 6]])
    assert (tree.tokens.tolist(), tree.parents.tolist(), tree.sources.tolist()) == ([2, 4], [-1, 0], [-1, -1])


def test_the_context_in_earlier_answers_is_that_of_the_path() -> None:
    # after 4 comes 1 three times, but after 2 4 comes 6
    likely = scorer_of({"probability after earlier answers": 20.0}, last=-5.0)
    tree = drafted(begun([], [0]), 3, likely, [[0, 2, 4, 6], *[[5, 4, 1]] * 3])
    assert paths(tree)[:3] == [(2,), (2, 4), (2, 4, 6)]


def test_depths_are_as_deep_as_nodes_allow() -> None:
    sure = scorer_of({"follows a match": 18.0}, last=-9.0)
    tree = drafted(begun([list(range(50))], [0], plain_table(100)), 32, sure)
    assert depths(tree).tolist() == list(range(1, 33))


@given(TEXTS, STARTED, SEEDS)
def test_searching_changes_nothing_in_the_session(references: list[list[int]], answer: list[int], seed: int) -> None:
    session = begun(references, answer)
    before = [array.copy() for array in session]
    drafted(session, 8, random_scorer(seed))
    assert all(np.array_equal(one, other) for one, other in zip(before, session, strict=True))
