from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import corpus_passes
from indexes.corpus import MAX_VOCABULARY, Corpus, decode_ids, encode_ids, id_bytes, write_corpus
from indexes.corpus_passes import find_places, plan_passes, runs, sorted_rows
from indexes.errors import NothingToIndexError, SettingError
from tests.indexes.stores import TEXTS, VOCABULARIES


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus") / "text"


@pytest.mark.parametrize(("vocabulary", "width"), [(1, 2), (65_535, 2), (65_536, 3), (151_936, 3), (MAX_VOCABULARY, 3)])
def test_the_greatest_id_fits_and_is_not_taken_for_an_end(vocabulary: int, width: int) -> None:
    assert id_bytes(vocabulary) == width
    assert decode_ids(encode_ids([0, vocabulary - 1], width), width).tolist() == [1, vocabulary]


@pytest.mark.parametrize("vocabulary", [0, -1, MAX_VOCABULARY + 1])
def test_an_impossible_vocabulary_is_refused(vocabulary: int) -> None:
    with pytest.raises(SettingError, match=f"vocabulary is {vocabulary}; it must be 1 to"):
        id_bytes(vocabulary)


@given(st.lists(st.integers(0, 69_999), min_size=1), st.lists(st.integers(0, 69_999), min_size=1))
def test_bytes_compare_as_tokens_do(one: list[int], other: list[int]) -> None:
    assert (encode_ids(one, 3) < encode_ids(other, 3)) == (one < other)


@pytest.mark.parametrize("text", [[6], [-1], [0, 7, 1], [70_000]])
def test_an_id_outside_the_vocabulary_is_refused_by_its_value(path: Path, text: list[int]) -> None:
    with pytest.raises(SettingError, match=r"the token id (6|-1|7|70000); the vocabulary has ids 0 to 5"):
        write_corpus(path, [text], 6)


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_nothing_cannot_be_written(path: Path, texts: list[list[int]]) -> None:
    with pytest.raises(NothingToIndexError):
        write_corpus(path, texts, 6)


@given(TEXTS, VOCABULARIES, st.integers(1, 6))
def test_a_window_ends_with_its_text(path: Path, texts: list[list[int]], vocabulary: int, length: int) -> None:
    written = write_corpus(path, texts, vocabulary)
    joined = [(text, at) for text in texts if text for at in range(len(text) + 1)]
    rows = Corpus(path, vocabulary).windows(np.arange(written), length).tolist()
    expected = [[token + 1 for token in text[at : at + length]] for text, at in joined]
    assert rows == [row + [0] * (length - len(row)) for row in expected]


@given(TEXTS, VOCABULARIES, st.integers(1, 7))
def test_every_place_is_in_one_pass(path: Path, texts: list[list[int]], vocabulary: int, most: int) -> None:
    written = write_corpus(path, texts, vocabulary)
    corpus = Corpus(path, vocabulary)
    tokens = corpus.slice(0, written)
    with patch.object(corpus_passes, "PASS", most):
        found = np.concatenate([find_places(corpus, chosen) for chosen in plan_passes(corpus)])
    assert sorted(found.tolist()) == np.flatnonzero(tokens).tolist()


@given(TEXTS, VOCABULARIES)
def test_rows_are_sorted_and_keep_their_places(path: Path, texts: list[list[int]], vocabulary: int) -> None:
    written = write_corpus(path, texts, vocabulary)
    corpus = Corpus(path, vocabulary)
    places, rows = sorted_rows(corpus, np.arange(written), 9)
    assert rows.tolist() == sorted(rows.tolist()) == corpus.windows(places, 9).tolist()


def test_runs_are_the_n_grams_that_something_follows() -> None:
    rows = np.array([[1, 0, 0], [1, 2, 0], [1, 2, 3], [1, 2, 3], [2, 5, 0]])
    starts, lengths = runs(rows, 2)
    assert (starts.tolist(), lengths.tolist()) == ([1], [3])  # 1 2 three times; 2 5 ends its text
    starts, lengths = runs(rows, 1)
    assert (starts.tolist(), lengths.tolist()) == ([0, 4], [4, 1])
