from __future__ import annotations

import math
from pathlib import Path

import pytest

from indexes.postings import Postings, build_postings, stems


def postings(tmp_path: Path, *texts: str) -> Postings:
    build_postings(texts, tmp_path / "postings")
    return Postings(tmp_path / "postings")


def test_a_single_letter_is_a_word(tmp_path: Path) -> None:
    assert postings(tmp_path, "Java is a language", "C is a language", "Rust").search("What is C?", 5) == [1]


def test_a_single_digit_is_a_word(tmp_path: Path) -> None:
    assert postings(tmp_path, "chapter 4 begins", "chapter 5 ends").search("5", 5) == [1]


def test_stems_meet(tmp_path: Path) -> None:
    assert postings(tmp_path, "the cat", "he was running").search("run", 5) == [1]


def test_the_shorter_of_two_passages_with_the_word_comes_first(tmp_path: Path) -> None:
    assert postings(tmp_path, "lambda one two three four five", "lambda", "other").search("lambda", 5) == [1, 0]


def test_top_k_cuts(tmp_path: Path) -> None:
    assert postings(tmp_path, "word", "word more", "word").search("word", 2) == [0, 2]


@pytest.mark.parametrize("question", ["", "?!", "unknown", "the of"])
def test_a_question_without_known_words_finds_nothing(tmp_path: Path, question: str) -> None:
    assert postings(tmp_path, "some text", "the of").search(question, 5) == []


@pytest.mark.parametrize("text", ["the of and", "...", "— ! —"])
def test_passages_without_a_single_word_can_be_indexed(tmp_path: Path, text: str) -> None:
    assert postings(tmp_path, text, text).search("the anything ...", 5) == []


def test_a_word_is_the_rarer_the_fewer_passages_hold_it(tmp_path: Path) -> None:
    found = postings(tmp_path, "the cat runs", "the dog", "a bird").rarity("What is the running cats' Zebra?")
    assert found == pytest.approx(
        {"run": math.log(1 + 2.5 / 1.5), "cat": math.log(1 + 2.5 / 1.5), "zebra": math.log(8)}
    )


def test_a_passage_s_stems_are_those_that_rarity_names() -> None:
    assert stems("The cats were running") >= {"cat", "run"}
