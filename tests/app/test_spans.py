"""Which runs of an answer stand verbatim in which passage."""

from __future__ import annotations

import random
import time
import unicodedata
from collections.abc import Sequence

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from app.spans import MIN_WORDS, Span, Tracer, copied_fraction

Passages = Sequence[tuple[str, str]]


def trace(answer: str, *texts: str, min_words: int = 3) -> list[Span]:
    return Tracer([(f"p{rank}", text) for rank, text in enumerate(texts)], min_words).spans(answer)


def quoted(answer: str, *texts: str, min_words: int = 3) -> list[tuple[str, str, str]]:
    """Each span as (words of the answer, passage, words of the passage)."""
    return [
        (
            answer[span.start : span.end],
            span.passage_id,
            texts[int(span.passage_id[1:])][span.passage_start : span.passage_end],
        )
        for span in trace(answer, *texts, min_words=min_words)
    ]


def squeezed(text: str) -> str:
    return "".join(text.split())


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


PIECES = [
    "the",
    "cat",
    "sat",
    "catalogue",
    "don't",
    "e\u0301t",
    "e",
    "été",
    "ورحمة",
    "الله",
    "3.14",
    "3",
    "14",
    "👩‍👩‍👧",
    "👩",
    "🇩🇪",
]
MARKS = ["\u0301", "\u200d", "\ufe0f", "\ud83d", "\udc69", ".", ",", "'", "(", "\u00ad", "_"]
IDEOGRAPHS = ["人", "工", "知", "カナ", "か", "ไทย"]
SPACES = [" ", " ", " ", "\n", "\u00a0", "\t  ", ""]


def written(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(st.sampled_from(pieces), st.sampled_from(SPACES)), max_size=14).map(
        lambda drawn: "".join(piece + space for piece, space in drawn)
    )


@st.composite
def answers(draw: st.DrawFn, pieces: list[str]) -> tuple[str, list[str]]:
    """Passages, and an answer that copies from them from anywhere to anywhere."""
    texts = draw(st.lists(written(pieces), max_size=3))
    answer = draw(written(pieces))
    for text in texts:
        start, end = draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))
        answer += text[start:end] + draw(st.sampled_from(SPACES))
    return answer, texts


def assert_sound(answer: str, texts: list[str], min_words: int) -> None:
    """What holds for all spans of any texts."""
    end = 0
    for span in trace(answer, *texts, min_words=min_words):
        passage = texts[int(span.passage_id[1:])]
        assert end <= span.start < span.end <= len(answer)
        assert 0 <= span.passage_start < span.passage_end <= len(passage)
        here, there = answer[span.start : span.end], passage[span.passage_start : span.passage_end]
        assert squeezed(here) == squeezed(there)
        assert here == here.strip()
        assert there == there.strip()
        assert len(regex.findall(r"[\p{L}\p{N}]+", here)) >= 1
        end = span.end


@given(answers(PIECES + MARKS + IDEOGRAPHS), st.integers(1, 3))
def test_every_span_has_the_same_text_as_its_place_in_the_passage(drawn: tuple[str, list[str]], min_words: int) -> None:
    assert_sound(*drawn, min_words)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_texts_can_be_traced(answer: str, text: str) -> None:
    assert_sound(answer + text[3:20], [text], 1)


def splits_a_word(text: str, at: int) -> bool:
    """Whether letters, digits or a combining mark on both sides belong together, in scripts that separate words."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return (before.isalnum() and after.isalnum()) or (before.isalnum() and unicodedata.combining(after) > 0)


@given(answers(PIECES + MARKS))
def test_no_span_starts_or_ends_inside_a_word_of_answer_or_passage(drawn: tuple[str, list[str]]) -> None:
    answer, texts = drawn
    for span in trace(answer, *texts, min_words=1):
        passage = texts[int(span.passage_id[1:])]
        assert not splits_a_word(answer, span.start)
        assert not splits_a_word(answer, span.end)
        assert not splits_a_word(passage, span.passage_start)
        assert not splits_a_word(passage, span.passage_end)


@given(answers(PIECES + IDEOGRAPHS))
@example(("a b c 👩‍👩‍👧", ["a b c 👩"]))
def test_no_span_starts_or_ends_inside_a_character_as_people_see_it(drawn: tuple[str, list[str]]) -> None:
    answer, texts = drawn
    seen = {0, *(cluster.end() for cluster in regex.finditer(r"\X", answer))}
    for span in trace(answer, *texts, min_words=1):
        assert {span.start, span.end} <= seen


# Against a search through all runs


def by_brute_force(answer: list[str], passages: list[list[str]], least: int) -> list[tuple[int, int, int]]:
    """Take the longest free run that stands in a passage, then the best ranked, then the first; again and again."""
    free, found = [True] * len(answer), []
    while True:
        runs = [
            (-len(" ".join(answer[first:last])), rank, first, last)
            for rank, passage in enumerate(passages)
            for first in range(len(answer))
            for last in range(first + least, len(answer) + 1)
            if all(free[first:last])
            and any(passage[at : at + last - first] == answer[first:last] for at in range(len(passage)))
        ]
        if not runs:
            return sorted((first, last, rank) for _, rank, first, last in found)
        best = min(runs)
        found.append(best)
        free[best[2] : best[3]] = [False] * (best[3] - best[2])


WORDS = st.lists(st.sampled_from(["a", "bb", "c"]), max_size=14)


@given(WORDS, st.lists(WORDS, max_size=3), st.integers(1, 3))
def test_spans_are_those_of_a_search_through_all_runs(
    answer: list[str], passages: list[list[str]], min_words: int
) -> None:
    starts = [len(" ".join([*answer[:at], ""])) for at in range(len(answer))]
    expected = [
        (starts[first], starts[last - 1] + len(answer[last - 1]), f"p{rank}")
        for first, last, rank in by_brute_force(answer, passages, min_words)
    ]
    found = trace(" ".join(answer), *(" ".join(passage) for passage in passages), min_words=min_words)
    assert [(span.start, span.end, span.passage_id) for span in found] == expected


# Growing answers


def test_a_half_written_last_word_counts_only_if_the_passage_has_it_whole() -> None:
    assert quoted("see the big cat", "see the big catalogue") == [("see the big", "p0", "see the big")]
    assert quoted("see the big cat", "see the big cat") == [("see the big cat", "p0", "see the big cat")]


@given(answers(PIECES))
def test_every_state_of_a_growing_answer_has_sound_spans_with_whole_words_of_the_passage(
    drawn: tuple[str, list[str]],
) -> None:
    answer, texts = drawn
    for end in range(len(answer) + 1):
        assert_sound(answer[:end], texts, 2)
        for span in trace(answer[:end], *texts, min_words=2):
            assert not splits_a_word(texts[int(span.passage_id[1:])], span.passage_end)


def test_one_tracer_gives_the_same_spans_whatever_it_traced_before() -> None:
    passages = [("p0", "a b c d e"), ("p1", "c d e f")]
    tracer = Tracer(passages)
    for end in range(14):
        tracer.spans("x a b c d e f"[:end])
    assert tracer.spans("x a b c d e f") == Tracer(passages).spans("x a b c d e f")


# Time


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("a " * 20_000, ["a " * 20_000]),
        ("a " * 20_000, ["a " * 10_000] * 3),
        ("a b " * 10_000, ["a b " * 5_000, "b a " * 4_000]),
        ("a b a c " * 5_000, ["a b " * 3_000 + "a c " * 2_000, "c a b " * 3_000]),
        (" ".join(random.Random(1).choices("ab", k=20_000)), [" ".join(random.Random(2).choices("ab", k=20_000))]),
        ("a " * 20_000, ["".join("a " * length + "b " for length in range(200))]),
    ],
    ids=["one word", "one word, shorter passages", "two words", "overlaps", "random", "runs of every length"],
)
def test_twenty_thousand_repetitive_words_are_traced_in_seconds(answer: str, texts: list[str]) -> None:
    start = time.perf_counter()
    assert trace(answer, *texts)
    assert time.perf_counter() - start < 10


def test_time_grows_in_proportion_to_a_repetitive_answer() -> None:
    def seconds(words: int) -> float:
        tracer = Tracer([("p", "a " * (words // 2))])
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            tracer.spans("a " * words)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(40_000) < 16 * seconds(5_000)  # 8 if linear, 64 if quadratic


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
