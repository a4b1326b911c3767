from __future__ import annotations

import math

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.postings import postings_of, stems, words
from tests.indexes.small import postings

WORDS = st.sampled_from(["cat", "cats", "runs", "running", "5", "C", "Über", "über", "the", "lamp", "日本"])
SENTENCES = st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=1, max_size=8)


def test_a_single_letter_is_a_word() -> None:
    assert postings(["Java is a language", "C is a language", "Rust"]).search("What is C?", 5) == [1]


def test_a_single_digit_is_a_word() -> None:
    assert postings(["chapter 4 begins", "chapter 5 ends"]).search("5", 5) == [1]


def test_stems_meet() -> None:
    assert postings(["the cat", "he was running"]).search("run", 5) == [1]


def test_the_shorter_of_two_passages_with_the_word_comes_first() -> None:
    assert postings(["lambda one two three four five", "lambda", "other"]).search("lambda", 5) == [1, 0]


def test_top_k_cuts_and_of_equals_the_first_rows_stay() -> None:
    assert postings(["word", "word more", "word", "word"]).search("word", 2) == [0, 2]


@pytest.mark.parametrize("question", ["", "?!", "unknown", "the of"])
def test_a_question_without_known_words_finds_nothing(question: str) -> None:
    assert postings(["some text", "the of"]).search(question, 5) == []


@pytest.mark.parametrize("text", ["the of and", "...", "— ! —"])
def test_passages_without_a_single_word_can_be_indexed(text: str) -> None:
    assert postings([text, text]).search("the anything ...", 5) == []


def test_no_passages_have_no_scores() -> None:
    assert postings().scores("word").shape == (0,)


@settings(deadline=None)
@given(texts=SENTENCES, question=SENTENCES.map(" ".join))
def test_scores_are_those_of_bm25s_to_the_last_bit(texts: list[str], question: str) -> None:
    index, asked = bm25s.BM25(), words([question])[0]
    if any(words(texts)):
        index.index(words(texts), show_progress=False)
        asked = [word for word in asked if word in index.vocab_dict]
    expected = index.get_scores(asked) if asked and any(words(texts)) else np.zeros(len(texts), np.float32)
    assert postings(texts).scores(question).tolist() == expected.tolist()


@settings(deadline=None)
@given(texts=SENTENCES, more=SENTENCES, question=SENTENCES.map(" ".join), cut=st.integers(0, 8))
def test_scores_do_not_tell_segments_or_deleted_passages(
    texts: list[str], more: list[str], question: str, cut: int
) -> None:
    cut = min(cut, len(texts))
    divided = postings(texts, more, deleted=[(0, cut)])
    whole = postings([*texts[cut:], *more])
    assert divided.scores(question)[cut:].tolist() == whole.scores(question).tolist()
    some = range(len(whole.scores(question)))[::-2]
    assert divided.scores(question, [cut + row for row in some]).tolist() == whole.scores(question)[some].tolist()
    assert [row - cut for row in divided.search(question, 5)] == whole.search(question, 5)


def test_a_word_is_the_rarer_the_fewer_passages_hold_it() -> None:
    found = postings(["the cat runs", "the dog"], ["a bird"]).rarity("What is the running cats' Zebra?")
    assert found == pytest.approx(
        {"run": math.log(1 + 2.5 / 1.5), "cat": math.log(1 + 2.5 / 1.5), "zebra": math.log(8)}
    )


def test_a_passage_s_stems_are_those_that_rarity_names() -> None:
    assert stems("The cats were running") >= {"cat", "run"}


def test_postings_of_texts_are_those_of_a_segment() -> None:
    assert (
        postings_of(["the cat runs", "a dog"]).scores("cat").tolist()
        == postings(["the cat runs", "a dog"]).scores("cat").tolist()
    )
