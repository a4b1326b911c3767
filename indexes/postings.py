"""BM25 postings (bm25s, Snowball stems): the lexical half of retrieval."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import numpy.typing as npt
import Stemmer


@functools.cache
def _stemmer() -> Any:
    return Stemmer.Stemmer("english")


def _words(texts: Sequence[str], stopwords: str = "en") -> Any:
    # \w+ and not bm25s's default of two letters or more: "C", "5" and "=" questions name single characters
    return bm25s.tokenize(
        list(texts),
        token_pattern=r"(?u)\b\w+\b",
        stopwords=stopwords,
        stemmer=_stemmer(),
        return_ids=False,
        show_progress=False,
    )


def stems(text: str) -> set[str]:
    """The different words of a text as postings hold them."""
    return set(_words([text])[0])


def build_postings(texts: Sequence[str], folder: Path) -> None:
    """Index the passages by row and write the postings into `folder`."""
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG when imported
    index = bm25s.BM25()
    words = _words(texts)
    if not any(words):  # bm25s fails on an empty vocabulary; no question holds the empty word
        words = [[""] for _ in texts]
    index.index(words, show_progress=False)
    index.save(str(folder), show_progress=False)


class Postings:
    """Opens postings written by `build_postings`."""

    def __init__(self, folder: Path) -> None:
        self._index = bm25s.BM25.load(str(folder), show_progress=False, verbosity=0)

    def scores(self, question: str) -> npt.NDArray[np.float32]:
        """The BM25 score of every passage (N,), by row."""
        words = [word for word in _words([question])[0] if word in self._index.vocab_dict]
        if not words:
            return np.zeros(int(self._index.scores["num_docs"]), np.float32)
        return np.asarray(self._index.get_scores(words), np.float32)

    def rarity(self, question: str) -> dict[str, float]:
        """BM25's inverse document frequency of each different word that is no function word (English ones are known),
        as `stems` gives it; a word that no passage holds is rarest."""
        held = np.diff(self._index.scores["indptr"])  # how many passages hold each known word
        count = int(self._index.scores["num_docs"])
        found: dict[str, float] = {}
        for word in _words([question], "en_plus")[0]:
            known = self._index.vocab_dict.get(word)
            holding = 0 if known is None else int(held[known])
            found[word] = math.log(1 + (count - holding + 0.5) / (holding + 0.5))
        return found

    def search(self, question: str, top_k: int) -> list[int]:
        """Rows of the `top_k` passages that share words with the question, best BM25 score first."""
        scores = self.scores(question)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [int(row) for row in order if scores[row] > 0]
