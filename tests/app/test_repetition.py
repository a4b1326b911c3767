from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.repetition import repetition_start

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
