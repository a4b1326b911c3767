from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.passages import Chunk
from retrieval.chunking import chunk_text

SPACES = " \t\n\r\x0b\x0c\x1c\x85\u00a0\u2028\u3000"
TEXTS = st.text(st.one_of(st.sampled_from(SPACES + ".!?ab"), st.characters(exclude_categories=["Cs"])), max_size=400)


@given(text=TEXTS, max_chars=st.integers(1, 60))
def test_every_chunk_stands_at_its_start(text: str, max_chars: int) -> None:
    assert all(text[chunk.start : chunk.start + len(chunk.text)] == chunk.text for chunk in chunk_text(text, max_chars))


@given(text=TEXTS, max_chars=st.integers(1, 60))
def test_no_chunk_is_longer_than_allowed_or_blank(text: str, max_chars: int) -> None:
    assert all(len(chunk.text) <= max_chars and chunk.text.strip() for chunk in chunk_text(text, max_chars))


@given(text=TEXTS, max_chars=st.integers(1, 60))
def test_chunks_lose_nothing_but_white_space_and_do_not_overlap(text: str, max_chars: int) -> None:
    assert "".join("".join(chunk.text for chunk in chunk_text(text, max_chars)).split()) == "".join(text.split())


@given(text=TEXTS.filter(str.strip))
def test_a_text_that_holds_something_has_a_chunk(text: str) -> None:
    assert chunk_text(text, 10)


def test_paragraphs_are_cut_first() -> None:
    assert chunk_text("One. Two.\n\nThree.", 12) == [Chunk(0, "One. Two."), Chunk(11, "Three.")]


def test_then_sentences_are_cut() -> None:
    assert chunk_text("One is. Two is.", 8) == [Chunk(0, "One is."), Chunk(8, "Two is.")]


def test_a_word_that_is_too_long_is_cut_anywhere() -> None:
    assert chunk_text("abcdefg", 3) == [Chunk(0, "abc"), Chunk(3, "def"), Chunk(6, "g")]


def test_repeated_text_keeps_apart() -> None:
    assert [chunk.start for chunk in chunk_text("same\n\nsame\n\nsame", 5)] == [0, 6, 12]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_nothing_gives_no_chunks(text: str) -> None:
    assert chunk_text(text, 10) == []
