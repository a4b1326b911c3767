from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from indexes.errors import SettingError
from indexes.passages import Passage
from indexes.store import open_index
from retrieval.conversation import Turn
from retrieval.follow_ups import alone
from retrieval.indexing import build_index
from retrieval.rerankers import LateInteractionReranker, Reranker, Scores
from retrieval.retriever import Retriever
from tests.hash_encoder import HashEncoder
from tests.indexes.small import SETTINGS, document, no_progress

TEXTS = ["lambda creates functions", "import loads modules", "yield makes generators", "C is another language"]


def retriever(tmp_path: Path, reranker: Reranker | None = None, candidates: int = 100) -> Retriever:
    encoder = HashEncoder()
    documents = [document(f"d{number}", text) for number, text in enumerate(TEXTS)]
    build_index(tmp_path / "i", SETTINGS, documents, encoder, no_progress)
    index = open_index(tmp_path / "i")
    return Retriever(encoder, index.vectors, index.postings, index.passages.get, reranker, candidates)


def by_length(question: str, passages: Sequence[Passage]) -> Scores:
    """Shorter passages score higher, whatever is asked."""
    return np.array([-len(passage.text) for passage in passages], np.float32)


def by_shared_words(question: str, passages: Sequence[Passage]) -> Scores:
    words = set(question.split())
    return np.array([len(words & set(passage.text.split())) for passage in passages], np.float32)


def test_the_passage_with_the_question_s_words_comes_first(tmp_path: Path) -> None:
    assert retriever(tmp_path).find("import modules", 1)[0].passage.text == TEXTS[1]


def test_a_single_letter_finds_its_passage(tmp_path: Path) -> None:
    assert retriever(tmp_path).rank(alone("What is C?")).lexical == [3]


def test_the_reranker_s_scores_decide_the_order(tmp_path: Path) -> None:
    found = retriever(tmp_path, by_length).find("lambda", 4)
    assert [(item.passage.text, item.score) for item in found] == [
        (TEXTS[1], -20), (TEXTS[3], -21), (TEXTS[2], -22), (TEXTS[0], -24),
    ]  # fmt: skip


def test_without_a_reranker_the_fused_scores_stand(tmp_path: Path) -> None:
    found = retriever(tmp_path).find("import modules", 1)
    assert found[0].score == pytest.approx(1 / 61 + 1 / 61)  # first in both rankings


def test_top_k_cuts(tmp_path: Path) -> None:
    assert len(retriever(tmp_path).find("lambda", 2)) == 2


def test_more_than_there_are_gives_all(tmp_path: Path) -> None:
    assert len(retriever(tmp_path).find("lambda", 50)) == 4


def test_top_k_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="top_k is 0; it must be at least 1"):
        retriever(tmp_path).find("lambda", 0)


def test_only_so_many_candidates_are_reranked(tmp_path: Path) -> None:
    assert len(retriever(tmp_path, by_length, candidates=2).rank(alone("lambda")).reranked) == 2


def test_a_follow_up_finds_what_the_question_before_it_was_about(tmp_path: Path) -> None:
    found = retriever(tmp_path, by_shared_words, candidates=1)
    assert found.find("and what for?", 1, [Turn("yield generators", "")])[0].passage.text == TEXTS[2]


def test_the_question_before_counts_less_when_a_follow_up_is_scored(tmp_path: Path) -> None:
    found = retriever(tmp_path, by_shared_words).find("does it import", 2, [Turn("yield makes generators", "modules")])
    # generators: 0 + 0.4 x 3 words of the question before; import: 1 + 0.25 x 1 word of the answer
    assert [item.passage.text for item in found] == [TEXTS[1], TEXTS[2]]
    assert [item.score for item in found] == pytest.approx([1.25, 1.2])


def test_a_question_that_stands_alone_is_not_drawn_to_the_one_before(tmp_path: Path) -> None:
    found = retriever(tmp_path, by_shared_words).find("import modules", 4, [Turn("yield makes generators", "yield")])
    assert [item.score for item in found] == [2, 0, 0, 0]


def test_every_stage_is_timed(tmp_path: Path) -> None:
    assert set(retriever(tmp_path).rank(alone("lambda")).seconds) == {"dense", "lexical", "fused", "reranked"}


class TwoWords(HashEncoder):
    """Two dimensions by hand: "east" is (1, 0), "north" (0, 1), "north-east" (0.6, 0.8)."""

    def encode_tokens(self, texts: Sequence[str]) -> tuple[np.ndarray, list[np.ndarray]]:
        known = {"east": (1.0, 0.0), "north": (0.0, 1.0), "north-east": (0.6, 0.8)}
        tokens = [np.array([known[word] for word in text.split()], np.float32) for text in texts]
        return np.stack([vectors[0] for vectors in tokens]), tokens


def passage(text: str) -> Passage:
    return Passage(0, "p", "p", "p", 0, text)


def test_late_interaction_weighs_each_word_s_best_cosine_by_how_rare_good_ones_are() -> None:
    rerank = LateInteractionReranker(TwoWords(dimension=2), None)
    scores = rerank("east north", [passage("north-east"), passage("east"), passage("north east")])
    # best cosines (0.6, 0.8), (1, 0), (1, 1); their means 0.867 and 0.6, so weights 0.133 and 0.4, that is 1 : 3
    assert scores == pytest.approx([0.25 * 0.6 + 0.75 * 0.8, 0.25, 1.0], abs=0.01)


def test_late_interaction_reads_the_stored_vectors_of_the_row(tmp_path: Path) -> None:
    retriever(tmp_path)
    index = open_index(tmp_path / "i")
    rerank = LateInteractionReranker(HashEncoder(), index.tokens)
    assert rerank(TEXTS[2], index.passages.get([2]))[0] == pytest.approx(1.0, abs=0.02)


def test_no_passages_have_no_scores() -> None:
    assert LateInteractionReranker(HashEncoder(), None)("x", []).shape == (0,)


def test_late_interaction_adds_a_fiftieth_of_the_bm25_score(tmp_path: Path) -> None:
    retriever(tmp_path)
    index = open_index(tmp_path / "i")
    passages = index.passages.get(range(4))
    vectors_only = LateInteractionReranker(HashEncoder(), index.tokens)("import modules", passages)
    both = LateInteractionReranker(HashEncoder(), index.tokens, index.postings)("import modules", passages)
    assert both - vectors_only == pytest.approx(0.02 * index.postings.scores("import modules"), abs=1e-6)
    assert index.postings.scores("import modules")[1] > 0
