from __future__ import annotations

import pytest

from retrieval.conversation import NOTHING_FOUND, Turn
from retrieval.follow_ups import TOLD_WEIGHT, TOPIC_WEIGHT, alone, goes_back, in_context, own_words

LAMBDA = Turn("What is a lambda?", "A function without a name.")


@pytest.mark.parametrize(
    "question",
    [
        "Can they contain statements?",
        "Why?",
        "And without a separator?",
        "What if it is missing?",
        "",
        "How do I make one?",
    ],
)
def test_questions_that_go_back(question: str) -> None:
    assert goes_back(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is a code object?",
        "How do I leave a loop early?",
        "Which treaty provides that European law be applied to metropolitan territories of member states?",
    ],
)
def test_questions_that_stand_alone(question: str) -> None:
    assert not goes_back(question)


def test_function_words_and_pronouns_are_not_a_question_s_own_words() -> None:
    assert own_words("What does it do with the Else clause of a loop?") == ["clause", "loop"]


def test_a_first_question_is_searched_alone() -> None:
    assert in_context("Can they contain statements?", ()) == alone("Can they contain statements?")


def test_a_new_topic_is_searched_alone() -> None:
    assert in_context("What is a code object?", [LAMBDA]) == alone("What is a code object?")


def test_a_follow_up_is_searched_with_the_question_before_it_and_with_what_was_answered() -> None:
    asked = in_context("Can they nest?", [LAMBDA])
    assert asked.whole == "What is a lambda? Can they nest?"
    assert asked.queries == (
        "Can they nest?",
        "What is a lambda? Can they nest?",
        "What is a lambda? A function without a name. Can they nest?",
    )
    assert asked.scored == (
        ("Can they nest?", 1.0),
        ("What is a lambda?", TOPIC_WEIGHT),
        ("A function without a name.", TOLD_WEIGHT),
    )


def test_a_chain_of_follow_ups_goes_back_to_the_question_that_began_it() -> None:
    turns = [Turn("How does a loop end?", "With break."), LAMBDA, Turn("Can they nest?", "Yes.")]
    assert in_context("How deep?", turns).whole == "How deep?"  # "deep" is its own word, and nothing points back
    assert in_context("And how deep?", turns).whole == "What is a lambda? Can they nest? And how deep?"


def test_of_a_chain_without_a_beginning_all_questions_count() -> None:
    assert in_context("Why?", [Turn("And this?", "x"), Turn("And that?", "y")]).whole == "And this? And that? Why?"


def test_of_a_long_answer_the_first_twenty_words_count() -> None:
    told = in_context("Why?", [Turn("What is a lambda?", "word " * 500)]).scored[2][0]
    assert told == " ".join(["word"] * 20)


@pytest.mark.parametrize("answer", ["", "  ", NOTHING_FOUND])
def test_an_answer_that_told_nothing_is_not_searched_for(answer: str) -> None:
    asked = in_context("Why?", [Turn("What is a lambda?", answer)])
    assert asked.queries == ("Why?", "What is a lambda? Why?")
    assert asked.scored == (("Why?", 1.0), ("What is a lambda?", TOPIC_WEIGHT))
