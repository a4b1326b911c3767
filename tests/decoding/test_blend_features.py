"""What the blend drafter knows of candidates, worked by hand. In these texts 2 k and 2 k + 1 are one word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from decoding.blend.features import COUNT, FEATURES, MAX_CANDIDATES, _bin
from decoding.blend.session import emit, new_session
from decoding.blend.token_table import NAME, WORD, TokenTable, plain_table
from decoding.drafter import Reference
from tests.decoding.blending import ANSWER, TABLE, TEXTS, begun, features_of, matches

BINS = [name for name in FEATURES if name.startswith("longest match in references")]
BINS_OUT = [name for name in FEATURES if name.startswith("longest match in the answer")]
KIND = [name for name in FEATURES if name.startswith("its kind is")]
LAST_KIND = [name for name in FEATURES if name.startswith("the last token's kind")]


def test_names_are_as_many_as_numbers_and_all_different() -> None:
    assert len(set(FEATURES)) == len(FEATURES) == COUNT


@pytest.mark.parametrize(
    ("length", "name"),
    [(0, "0"), (1, "1"), (2, "2"), (3, "3"), (4, "4-5"), (5, "4-5"), (6, "6-9"), (9, "6-9"), (10, "10+"), (99, "10+")],
)
def test_each_length_has_its_bin(length: int, name: str) -> None:
    assert FEATURES[_bin(length)] == f"longest match in references: {name}"


def test_candidates_follow_a_match_or_a_context_in_other_texts() -> None:
    session = begun([[0, 2, 4], [7, 2, 6]], [2])
    found = features_of(session, answers=[[2, 5]], passages=[[2, 1], [9]])
    assert set(found) == {4, 6, 5, 1}
    assert {token: row["follows a match"] for token, row in found.items()} == {4: 1, 6: 1, 5: 0, 1: 0}


def test_what_follows_the_end_of_a_reference_is_no_candidate() -> None:
    assert features_of(begun([[0, 2], [4, 6]], [0, 2])) == {}


def test_the_answer_s_next_token_copies_from_the_answer() -> None:
    found = features_of(begun([], [0, 2, 4, 0]))
    assert set(found) == {2}
    assert [found[2][name] for name in BINS_OUT] == [0, 1, 0, 0]
    assert found[2]["share of matches in the answer"] == 1
    assert found[2]["longest match in references: 0"] == found[2]["no match at all"] == 1
    assert found[2]["log count in the answer"] == pytest.approx(math.log(2))


def test_lengths_shares_and_counts_of_matches() -> None:
    # after 0 2: 4 after two tokens, 6 after one, 6 after one again
    found = features_of(begun([[0, 2, 4], [6, 2, 6], [4, 2, 6]], [0, 2]))
    four, six = found[4], found[6]
    assert [four[name] for name in BINS] == [0, 0, 1, 0, 0, 0, 0]
    assert [six[name] for name in BINS] == [0, 1, 0, 0, 0, 0, 0]
    assert (four["no shorter than the best"], six["no shorter than the best"]) == (1, 0)
    assert (four["one shorter"], six["one shorter"]) == (0, 1)
    assert (four["how much shorter"], six["how much shorter"]) == (0, 1 / 8)
    shares = [f"share of matches of at least {length}" for length in (1, 2, 3, 5)]
    assert [four[name] for name in shares] == pytest.approx([1 / 3, 1, 0, 0])
    assert [six[name] for name in shares] == pytest.approx([2 / 3, 0, 0, 0])
    assert six["log number of matches of at least 1"] == pytest.approx(math.log(3))
    assert four["log number of matches of at least 2"] == pytest.approx(math.log(2))
    assert (four["log number of references"], six["log number of references"]) == pytest.approx(
        (math.log(2), math.log(3))
    )
    assert four["log number of candidates at the best length"] == pytest.approx(math.log(2))
    assert four["best match in references"] == pytest.approx(2 / 12)


def test_counts_in_documents_and_the_question() -> None:
    session = new_session([Reference((0, 4, 4)), Reference((0, 6)), Reference((6,), "question")], TABLE, 8)
    emit(session, np.array([0]))
    found = features_of(session)
    assert found[4]["log count in documents"] == pytest.approx(math.log(3))
    assert (found[4]["in the question"], found[6]["in the question"]) == (0, 1)


def test_the_rank_is_that_of_the_best_reference_with_the_longest_match() -> None:
    references = [Reference((0, 2, 4), score=1), Reference((0, 2, 4), score=2), Reference((2, 4), score=3)]
    session = new_session(references, TABLE, 8)
    emit(session, np.array([0, 2]))
    found = features_of(session, passages=[[2, 7]])
    assert found[4]["rank of its reference"] == pytest.approx(0.1)
    assert found[7]["rank of its reference"] == 1


def test_trust_counts_for_what_follows_a_place_of_the_trusted_reference() -> None:
    # the first reference holds 0 2 4 6 2; after that 2, 0 follows; the second offers 4 after 2
    session = begun([[0, 2, 4, 6, 2, 0], [2, 4]], [0, 2, 4, 6, 2])
    found = features_of(session)
    assert found[0]["trust in its reference"] == pytest.approx(0.05 * (1 + 0.95 + 0.95**2))
    assert found[4]["trust in its reference"] == pytest.approx(found[0]["trust in its reference"])  # it holds 2 4 too


@pytest.mark.parametrize(
    ("place", "near"), [(25, math.exp(-3 / 15)), (23, math.exp(-1 / 15)), (18, 0.5 * math.exp(-3 / 15))]
)
def test_places_just_after_the_last_copied_one_are_nearest(place: int, near: float) -> None:
    reference = list(range(40))
    reference[place] = 60  # the answer copies to place 21, and then says 60
    (row,) = features_of(begun([reference], [19, 20, 21, 60], plain_table(100))).values()
    assert row["near the last copied place"] == pytest.approx(near)


def test_a_copy_that_goes_on_is_near_and_two_tokens_are_no_copy() -> None:
    reference = list(range(40))
    near = [features_of(begun([reference], [18, 19, 20][-count:], plain_table(100)))[21] for count in (2, 3)]
    assert [row["near the last copied place"] for row in near] == [0, 0.5]


def test_probabilities_after_other_texts_and_the_longest_order_known() -> None:
    found = features_of(begun([[0, 4]], [2, 0]), answers=[[2, 0, 6]], passages=[[0, 6], [0, 4]])
    # unigram of 6 among answers: 1.02 / 3.16; then after 0: (1 + u) / 2; after 2 0 the same again
    share = (1 + (1 + 1.02 / 3.16) / 2) / 2
    assert found[6]["probability after earlier answers"] == pytest.approx(share, rel=1e-5)
    assert found[6]["log probability after earlier answers"] == pytest.approx(math.log(share + 1e-7) / 5, rel=1e-4)
    assert found[4]["longest order known from earlier answers"] == 2 / 4
    assert found[4]["longest order known from other passages"] == 1 / 4
    # unigram among passages: 1.02 / 4.16
    assert found[4]["probability after other passages"] == pytest.approx((1 + 2 * 1.02 / 4.16) / 4, rel=1e-5)
    assert found[4]["log frequency"] == pytest.approx(math.log(1.02 / 4.16) / 10, rel=1e-5)


def test_kinds_of_the_token_and_of_the_one_before_it() -> None:
    kinds = np.array([WORD, NAME, WORD], np.int64)
    found = features_of(begun([[0, 1]], [0], TokenTable(kinds, np.arange(3))))
    assert [found[1][name] for name in KIND] == [kind == NAME for kind in range(8)]
    assert [found[1][name] for name in LAST_KIND] == [kind == WORD for kind in range(8)]


@pytest.mark.parametrize(("answer", "second", "third"), [([0], 1, 0), ([2, 0], 0, 1), ([2, 2, 0], 0, 0)])
def test_the_place_in_the_answer(answer: list[int], second: int, third: int) -> None:
    row = features_of(begun([[0, 4]], answer))[4]
    assert (row["second token of the answer"], row["third token of the answer"]) == (second, third)
    assert row["log place in the answer"] == pytest.approx(math.log(1 + len(answer)) / 5)


def test_more_candidates_than_fit_are_left_out() -> None:
    table = plain_table(1000)
    text = [token for follower in range(1, 300) for token in (0, follower)]
    assert len(features_of(begun([text], [0], table))) == MAX_CANDIDATES


@given(TEXTS, ANSWER.filter(bool), TEXTS, TEXTS)
def test_features_are_finite_and_their_parts_agree(
    references: list[list[int]], answer: list[int], answers: list[list[int]], passages: list[list[int]]
) -> None:
    session = begun(references, answer)
    found = features_of(session, answers, passages)
    total = int(session.cursor[0])
    following = {
        int(session.tokens[place + 1]) for place, _ in matches(session) if place + 1 < min(total, session.end[place])
    }
    assert following == {token for token, row in found.items() if row["follows a match"]}
    for row in found.values():
        assert np.isfinite(list(row.values())).all()
        for group in (BINS, BINS_OUT, KIND, LAST_KIND):
            assert sum(row[name] for name in group) == 1
    for length in (1, 2, 3, 5):
        share = sum(row[f"share of matches of at least {length}"] for row in found.values())
        assert share == pytest.approx(1) or share == 0
