from __future__ import annotations

import pytest

from benchmarks.follow_ups_run import Dialogue
from benchmarks.told_turns import FORMS, judged
from retrieval.conversation import Turn

TURN = Turn("What is a lambda?", "A function without a name.")


def asked(form: str, question: str) -> list[str]:
    return [message["content"] for message in FORMS[form](question, ["best", "second"], [TURN])][1:]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "the last turn"])
def test_a_question_that_stands_alone_is_told_without_what_was_before(form: str) -> None:
    assert asked(form, "What is a code object?") == ["second\n\nbest\n\nQuestion: What is a code object?\nAnswer:"]


def test_a_follow_up_is_told_after_the_question_before_it() -> None:
    (told,) = asked("the last question as a line", "Can they nest?")
    assert told.endswith("best\n\nEarlier question: What is a lambda?\nQuestion: Can they nest?\nAnswer:")


def test_a_whole_turn_is_told_as_messages() -> None:
    assert asked("the last turn", "Can they nest?")[:2] == [TURN.question, TURN.answer]


def test_an_answer_says_what_is_wanted_with_four_of_five_words_of_the_phrase() -> None:
    dialogue = Dialogue("x", (TURN,), "q", "q", frozenset(), ("one two three four five",))
    last = "a b c d e f g h i j"
    assert judged("five four three and two", dialogue, last) == (True, False)
    assert judged("five four three", dialogue, last) == (False, False)
    assert judged("so a b c d e f g h", dialogue, last) == (False, True)  # a run of eight words
    assert judged("so a b c d e f g", dialogue, last) == (False, False)
