"""Which runs of an answer stand verbatim in which passage."""

from __future__ import annotations

import pytest

from app.answering.spans import MIN_WORDS, Span, Tracer, copied_fraction
from tests.app.quoting import quoted, trace

# Worked examples


def test_a_span_names_the_passage_and_the_characters_in_answer_and_passage() -> None:
    answer = "He said the cat sat down."
    passage = "Once the cat sat there."
    assert trace(answer, passage) == [Span(start=8, end=19, passage_id="p0", passage_start=5, passage_end=16)]
    assert answer[8:19] == passage[5:16] == "the cat sat"


def test_a_span_as_plain_values() -> None:
    assert Span(8, 19, "a.txt#1", 5, 16).to_json() == {
        "start": 8,
        "end": 19,
        "passage_id": "a.txt#1",
        "passage_start": 5,
        "passage_end": 16,
    }


def test_a_run_of_two_words_is_no_span() -> None:
    assert trace("a cat sat here", "the cat sat down") == []


def test_a_run_of_three_words_is_a_span() -> None:
    assert quoted("a cat sat down", "the cat sat down") == [("cat sat down", "p0", "cat sat down")]


def test_by_default_a_span_has_at_least_three_words() -> None:
    assert MIN_WORDS == 3
    assert Tracer([("p", "one two three")]).spans("one two") == []
    assert len(Tracer([("p", "one two three")]).spans("one two three")) == 1


@pytest.mark.parametrize(("min_words", "count"), [(1, 1), (2, 1), (3, 0)])
def test_the_least_number_of_words_can_be_set(min_words: int, count: int) -> None:
    assert len(trace("two words", "two words", min_words=min_words)) == count


def test_punctuation_does_not_count_as_a_word() -> None:
    assert trace("cat, sat!", "cat, sat!") == []
    assert quoted("cat, sat! on", "cat, sat! on") == [("cat, sat! on", "p0", "cat, sat! on")]


def test_a_span_is_as_long_as_the_texts_agree() -> None:
    assert quoted("x one two three four five y", "one two three four five six") == [
        ("one two three four five", "p0", "one two three four five")
    ]


def test_white_space_may_differ() -> None:
    assert quoted("one two three", "zero one\n\n  two\tthree four") == [("one two three", "p0", "one\n\n  two\tthree")]


def test_letter_case_may_not_differ() -> None:
    assert trace("One Two Three", "one two three") == []


def test_a_span_never_ends_inside_a_word() -> None:
    assert quoted("see the big cat", "see the big catalogue") == [("see the big", "p0", "see the big")]
    assert trace("the big cat", "the big catalogue") == []


def test_a_span_never_starts_inside_a_word() -> None:
    assert trace("art of war", "the dart of war") == []


@pytest.mark.parametrize("word", ["don't", "3.14", "1,000", "foo_bar", "e.g", "naïve", "l’eau"])
def test_a_word_with_a_mark_inside_is_one_word(word: str) -> None:
    assert trace(f"say {word}", f"say {word}") == []
    assert trace(f"I say {word[:-1]}", f"I say {word}") == []
    assert quoted(f"I say {word}", f"I say {word}") == [(f"I say {word}", "p0", f"I say {word}")]


def test_of_overlapping_runs_the_longest_wins() -> None:
    assert quoted("a b c d e f g h", "a b c d e", "c d e f g h") == [("c d e f g h", "p1", "c d e f g h")]


def test_the_rest_of_an_overlapped_run_is_kept_if_it_is_long_enough() -> None:
    assert quoted("x a b c d e f g h", "x a b c d", "c d e f g h") == [
        ("x a b", "p0", "x a b"),
        ("c d e f g h", "p1", "c d e f g h"),
    ]


def test_of_equally_long_runs_the_one_in_the_best_ranked_passage_wins() -> None:
    assert quoted("a b c d", "b c d", "a b c") == [("b c d", "p0", "b c d")]
    assert quoted("a b c", "a b c", "a b c") == [("a b c", "p0", "a b c")]


def test_both_rests_of_two_runs_around_a_longer_one_are_kept() -> None:
    assert quoted("a b c d e f g h i j", "a b c d e", "d e f g h i", "g h i j k l", "h i j", min_words=1) == [
        ("a b c", "p0", "a b c"),
        ("d e f g h i", "p1", "d e f g h i"),
        ("j", "p2", "j"),
    ]


def test_one_passage_may_be_quoted_twice() -> None:
    assert quoted("a b c or d e f", "a b c and d e f") == [("a b c", "p0", "a b c"), ("d e f", "p0", "d e f")]


def test_a_run_does_not_go_from_one_passage_into_the_next() -> None:
    assert trace("a b c d", "a b", "c d") == []


def test_the_first_place_in_a_passage_is_named() -> None:
    assert trace("a b c", "a b c x a b c") == [Span(0, 5, "p0", 0, 5)]


@pytest.mark.parametrize(("answer", "texts"), [("", ["a b c"]), ("a b c", [""]), ("a b c", []), (" \n", [" \n"])])
def test_empty_texts_have_no_spans(answer: str, texts: list[str]) -> None:
    assert trace(answer, *texts) == []


# Text of every kind


@pytest.mark.parametrize(
    "words",
    [
        "👩‍👩‍👧 family of 🇩🇪 three",
        "cafe\u0301 au lait",
        "人工知能の研究",
        "السلام عليكم ورحمة الله",
        "नमस्ते मेरी दुनिया",
        "한국어 문장 하나",
        "lone \ud800 surrogate here \udfff",
        "𝒜 math 𝒷old word",
        "nul \x00 byte \x1c here",
    ],
)
def test_text_of_every_kind_is_traced_in_characters(words: str) -> None:
    answer, passage = f"👍🏽 {words} .", f"🇫🇷é́ {words}"
    assert (f"{words}", "p0", f"{words}") in [
        (found.strip(" ."), where, there) for found, where, there in quoted(answer, passage)
    ]


def test_a_letter_without_its_combining_mark_is_another_word() -> None:
    assert trace("one two e", "one two e\u0301") == []


def test_a_part_of_an_emoji_is_not_the_emoji() -> None:
    assert quoted("a b c 👩", "a b c 👩‍👩‍👧") == [("a b c", "p0", "a b c")]


# Copied fraction


def test_the_copied_fraction_leaves_white_space_aside() -> None:
    assert copied_fraction("ab cd  ef", [Span(0, 5, "p", 0, 5)]) == 4 / 6


def test_an_answer_without_spans_has_copied_nothing() -> None:
    assert copied_fraction("ab", []) == 0.0


@pytest.mark.parametrize("answer", ["", " \n"])
def test_an_empty_answer_has_copied_nothing(answer: str) -> None:
    assert copied_fraction(answer, []) == 0.0


def test_an_answer_that_is_one_span_is_copied_whole() -> None:
    answer = "the cat sat"
    assert copied_fraction(answer, trace(answer, answer)) == 1.0
