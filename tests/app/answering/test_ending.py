from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.answering.ending import repetition_start, settle

SENTENCE = "The quick brown fox jumps over. "


def test_the_first_repeated_sentence_is_where_it_starts() -> None:
    text = SENTENCE + "Something else comes in between here. " + SENTENCE + "More."
    assert repetition_start(text) == len(SENTENCE) + len("Something else comes in between here. ")


def test_a_repeated_sentence_counts_once_something_follows_it() -> None:
    assert repetition_start(SENTENCE + SENTENCE.strip()) is None
    assert repetition_start(SENTENCE + SENTENCE) == len(SENTENCE)


def test_sentences_of_fewer_than_five_words_may_repeat() -> None:
    assert repetition_start("Yes, it does so. Yes, it does so. Yes, it does so. ") is None


def test_a_repeated_line_counts_as_a_sentence() -> None:
    assert repetition_start("one two three four five\none two three four five\n") == 24


@given(st.text(alphabet="ab. \n", max_size=200), st.integers(0, 200))
def test_a_growing_text_ends_where_the_whole_text_does(text: str, length: int) -> None:
    found = repetition_start(text[:length])
    assert found is None or found == repetition_start(text)


def test_an_answer_ends_before_the_first_stop_text_that_comes_up() -> None:
    assert settle("one END two STOP", ["STOP", "END"], False, final=True) == ("one", "stop")


def test_what_may_become_a_stop_text_is_held_back_until_it_cannot_be_one() -> None:
    assert settle("one E", ["END"], False, final=False) == ("one", None)
    assert settle("one Ex", ["END"], False, final=False) == ("one Ex", None)
    assert settle("one E", ["END"], False, final=True) == ("one E", None)


def test_a_sentence_that_may_become_an_earlier_one_is_held_back() -> None:
    said = "The sky is blue today. "
    assert settle(said + "The sky is", [], True, final=False) == (said.strip(), None)
    assert settle(said + "The sky was", [], True, final=False) == (said + "The sky was", None)
    assert settle(said + said, [], True, final=False) == (said.strip(), "repetition")


@given(st.text(alphabet="ab. \n", max_size=80), st.lists(st.text("ab. ", min_size=1, max_size=3), max_size=2))
def test_a_text_that_was_shown_is_never_taken_back(text: str, stop: list[str]) -> None:
    shown = ""
    for length in range(len(text)):
        incomplete, _ = settle(text[:length] + "\ufffd", stop, True, final=False)
        now, reason = settle(text[:length], stop, True, final=False)
        assert now.startswith(shown)
        assert now.startswith(incomplete)
        shown = now
        if reason:
            return
    assert settle(text, stop, True, final=True)[0].startswith(shown)
