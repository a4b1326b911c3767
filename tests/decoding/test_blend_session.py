"""The session of one answer: its matches against a search through all places, what it trusts, and its room."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.blend.session import EMITTED, LENGTH, MAX_MATCHES, OUTPUT, POINTER, Session, emit, new_session
from decoding.blend.token_table import plain_table
from decoding.drafter import Reference
from tests.decoding.blending import ANSWER, TABLE, TEXTS, VOCABULARY, begun, by_brute_force, matches


def of_owner(session: Session, lengths: list[list[int]]) -> dict[tuple[int, int], int]:
    """Matches by owner and offset in the owner's text."""
    starts = np.cumsum([0, *map(len, lengths)]).tolist()
    found = {}
    for place, length in matches(session):
        owner = int(session.owner[place])
        found[owner, place - (starts[-1] if owner == OUTPUT else starts[owner])] = length
    return found


@given(TEXTS, ANSWER)
def test_matches_are_those_of_a_search_through_all_places(references: list[list[int]], answer: list[int]) -> None:
    session = begun(references)
    for end in range(1, len(answer) + 1):
        emit(session, np.asarray(answer[end - 1 : end], np.int64))
        assert of_owner(session, references) == by_brute_force(references, answer[:end])


@given(TEXTS, ANSWER, st.integers(0, 12))
def test_it_does_not_matter_how_the_answer_grew(references: list[list[int]], answer: list[int], first: int) -> None:
    at_once, in_two = begun(references, answer), begun(references, answer[:first])
    emit(in_two, np.asarray(answer[first:], np.int64))
    assert matches(at_once) == matches(in_two)
    for one, other in zip(at_once[:-5], in_two[:-5], strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(at_once.recent, in_two.recent)
    assert np.array_equal(at_once.trust, in_two.trust)
    assert np.array_equal(at_once.cursor, in_two.cursor)


def test_a_word_matches_however_it_is_spelled() -> None:
    # 2 and 3 are one word, 4 and 5 another
    assert matches(begun([[2, 4, 6]], [3, 5])) == [(1, 2)]


def test_no_match_reaches_over_the_edge_of_a_reference() -> None:
    assert matches(begun([[0, 2], [4, 6]], [0, 2, 4])) == [(2, 1)]


def test_no_match_reaches_from_the_last_reference_into_the_answer() -> None:
    # the texts read 0 2 | 4 0 2 4: the 4 that begins the answer follows the 2 by chance
    assert matches(begun([[0, 2]], [4, 0, 2, 4])) == [(2, 1)]


def test_the_end_of_the_answer_is_no_match_of_itself() -> None:
    assert matches(begun([], [0, 2, 4])) == []
    assert matches(begun([], [0, 2, 0])) == [(0, 1)]


def test_a_long_match_is_kept_though_its_last_token_has_more_places_than_fit() -> None:
    many = [2] * (2 * MAX_MATCHES)
    session = begun([[0, 4, 2, 6], many], [0, 4, 2])
    found = dict(matches(session))
    assert (len(found), found[2]) == (MAX_MATCHES, 3)


def test_texts_lie_one_after_another_with_their_owners_and_ends() -> None:
    session = begun([[0, 2, 4], [], [6, 0]], [2])
    total = session.cursor[LENGTH]
    assert session.tokens[:total].tolist() == [0, 2, 4, 6, 0, 2]
    assert session.owner[:total].tolist() == [0, 0, 0, 2, 2, OUTPUT]
    assert session.end[:5].tolist() == [3, 3, 3, 5, 5]
    assert session.in_documents.tolist() == [2, 0, 1, 0, 1, 0, 1, 0]
    assert (session.in_answer.tolist(), session.cursor[EMITTED]) == ([0, 0, 1, 0, 0, 0, 0, 0], 1)


def test_tokens_outside_the_vocabulary_are_left_out() -> None:
    session = begun([[-1, 0, VOCABULARY, 2, 1 << 40]])
    assert (session.cursor[LENGTH], session.tokens[:2].tolist()) == (2, [0, 2])


def test_recent_tokens_are_the_newest_first() -> None:
    assert begun([], [1, 2]).recent.tolist() == [2, 1, -1, -1]
    assert begun([], [1, 2, 3, 4, 5]).recent.tolist() == [5, 4, 3, 2]


def test_there_is_room_for_as_many_tokens_as_asked_for() -> None:
    session = new_session([Reference((0, 2))], TABLE, 3)
    emit(session, np.array([2, 4, 6]))
    assert (len(session.tokens), session.cursor[LENGTH]) == (5, 5)


# Trust


def test_a_reference_is_trusted_once_it_holds_three_tokens_of_the_end() -> None:
    references = [[0, 2, 4, 6], [6, 2]]
    assert begun(references, [0, 2]).trust.tolist() == [0, 0, 0]
    session = begun(references, [0, 2, 4])
    assert session.trust.tolist() == pytest.approx([0.05, 0, 0])
    assert session.cursor[POINTER] == 2


def test_trust_grows_with_every_copied_token_and_fades_with_every_other() -> None:
    references = [[0, 2, 4, 6]]
    assert begun(references, [0, 2, 4, 6]).trust[0] == pytest.approx(0.05 * 0.95 + 0.05)
    assert begun(references, [0, 2, 4, 0]).trust[0] == pytest.approx(0.05 * 0.95)


def test_references_that_match_alike_share_trust_and_one_that_matches_less_gets_none() -> None:
    session = begun([[6, 2, 4, 0], [6, 2, 4], [2, 4, 6, 6, 2, 4]], [0, 6, 2, 4])
    assert session.trust.tolist() == pytest.approx([0.05 / 3, 0.05 / 3, 0.05 / 3, 0])
    session = begun([[0, 6, 2, 4, 0], [6, 2, 4]], [0, 6, 2, 4])
    # 0.05 for the first reference when 0 6 2 is written, again for 0 6 2 4; the second one's three tokens are fewer
    assert session.trust.tolist() == pytest.approx([0.05 * 0.95 + 0.05, 0, 0])


def test_the_answer_s_own_words_are_not_trusted() -> None:
    session = begun([[6]], [0, 2, 4, 0, 2, 4])
    assert (session.trust.tolist(), session.cursor[POINTER]) == ([0, 0], -1)


# Question and rank


def test_ranks_follow_scores_and_otherwise_the_order_given() -> None:
    references = [Reference((0,), score=0.1), Reference((2,), score=0.9), Reference((4,), score=0.1), Reference((6,))]
    assert new_session(references, TABLE).rank[:4].tolist() == [1, 0, 2, 3]
    many = [Reference((0,))] * 14
    assert new_session(many, TABLE).rank[:14].tolist() == [*range(10), 10, 10, 10, 10]


def test_a_question_ranks_behind_documents_whatever_their_scores() -> None:
    references = [Reference((1,), "question"), Reference((2,), score=-3.0), Reference((3,), score=-1.0)]
    assert new_session(references, TABLE).rank[:3].tolist() == [2, 1, 0]


def test_words_of_the_question_are_marked_and_are_no_words_of_documents() -> None:
    session = new_session([Reference((0, 2)), Reference((2, 6), "question")], TABLE)
    assert session.in_question.tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    assert session.in_documents.tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_places_near_rare_words_of_the_question_are_relevant_however_spelled() -> None:
    table = plain_table(300)
    table.folded[201] = 200
    far = list(range(100))
    far[50], far[49] = 201, 150  # 201 is the question's word; 150 is in no question
    session = new_session([Reference(tuple(far)), Reference((200,), "question")], table)
    relevance = session.relevance[:100]
    assert relevance.argmax() == 50
    assert relevance[50] == pytest.approx(1, abs=1e-4)
    assert relevance[57] / relevance[50] == pytest.approx(math.exp(-0.7), rel=1e-4)
    assert (relevance[:20] == 0).all()
    assert (relevance[81:] == 0).all()


def test_a_long_question_is_an_instruction_and_makes_nothing_relevant() -> None:
    question = Reference(tuple(range(65)), "question")
    session = new_session([Reference((3, 4)), question], plain_table(100))
    assert (session.in_question.sum(), session.relevance.sum()) == (0, 0)


def test_without_references_only_the_answer_is_known() -> None:
    session = new_session([], TABLE, 4)
    assert (session.cursor[LENGTH], session.trust.tolist()) == (0, [0])
