"""Spans of any texts: what always holds, a search through all runs, growing answers, hostile repetition."""

from __future__ import annotations

import random
import time
import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from app.answering.spans import Tracer
from tests.app.quoting import quoted, trace

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
        assert "".join(here.split()) == "".join(there.split())
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
    free = [True] * len(answer)
    found: list[tuple[int, int, int, int]] = []
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
