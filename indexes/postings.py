"""BM25 postings (Snowball stems): the lexical half of retrieval.

A segment keeps, for each word, the passages that hold it and how often. Scores are made when a question is asked, from
figures of the whole index (how many passages hold a word, how long they are on average), so that an index ranks the
same however it is divided. The variant and its constants are bm25s's defaults, Lucene's (Kamphuis et al., ECIR 2020).
"""

from __future__ import annotations

import bisect
import functools
import logging
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import bm25s
import numpy as np
import numpy.typing as npt
import Stemmer

from indexes.arrays import Arrays
from indexes.live import Live

K1, B = 1.5, 0.75
POSTING = np.dtype([("row", "<u4"), ("count", "<u4")])
COUNTED_AT_ONCE = 1000  # passages


@functools.cache
def _stemmer() -> Any:
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG when imported
    return Stemmer.Stemmer("english")


def words(texts: Sequence[str], stopwords: str = "en") -> list[list[str]]:
    """The stems of each text that are looked for, in order."""
    # \w+ and not bm25s's default of two letters or more: "C", "5" and "=" questions name single characters
    found: list[list[str]] = bm25s.tokenize(
        list(texts),
        token_pattern=r"(?u)\b\w+\b",
        stopwords=stopwords,
        stemmer=_stemmer(),
        return_ids=False,
        show_progress=False,
    )
    return found


def stems(text: str) -> set[str]:
    """The different words of a text as postings hold them."""
    return set(words([text])[0])


class PostingsWriter:
    """Counts the words of passages, given by row, and writes them word by word."""

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._waiting: list[str] = []
        self._ids, self._counts = array("I"), array("I")  # of each different word of each passage
        self._different, self._lengths = array("I"), array("I")

    def add(self, text: str) -> None:
        """The next passage."""
        self._waiting.append(text)
        if len(self._waiting) == COUNTED_AT_ONCE:
            self._count()

    def _count(self) -> None:
        ids = self._vocabulary
        for found in words(self._waiting) if self._waiting else ():
            counted = Counter(found)
            self._ids.extend(ids.setdefault(word, len(ids)) for word in counted)
            self._counts.extend(counted.values())
            self._different.append(len(counted))
            self._lengths.append(len(found))
        self._waiting.clear()

    def finish(self) -> tuple[bytes, dict[str, npt.NDArray[Any]]]:
        """The postings, words sorted, and what is to be opened at once to read them."""
        self._count()
        spelled = {word.encode("utf-8"): number for word, number in self._vocabulary.items()}
        order = sorted(spelled)
        place = np.empty(len(order), np.uint32)
        place[[spelled[word] for word in order]] = np.arange(len(order))
        ids = place[np.frombuffer(self._ids, np.uint32)]
        by_word = np.argsort(ids, kind="stable")
        postings = np.empty(len(ids), POSTING)
        rows = np.repeat(np.arange(len(self._lengths), dtype=np.uint32), np.frombuffer(self._different, np.uint32))
        postings["row"], postings["count"] = rows[by_word], np.frombuffer(self._counts, np.uint32)[by_word]
        return postings.tobytes(), {
            "words": np.frombuffer(b"".join(order), np.uint8),
            "word_ends": np.cumsum([0, *map(len, order)], dtype=np.int64),
            "posting_ends": np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=len(order)))]).astype(np.int64),
            "lengths": np.frombuffer(self._lengths, np.uint32),
        }


class PostingsFile:
    """A segment's; `read` gives the bytes between two places of what `PostingsWriter` wrote."""

    def __init__(self, read: Callable[[int, int], bytes], arrays: Arrays) -> None:
        self._read = read
        self._words = arrays["words"].tobytes()
        self._word_ends = arrays["word_ends"]
        self._posting_ends = arrays["posting_ends"]
        self.lengths: npt.NDArray[np.uint32] = arrays["lengths"]

    def holding(self, word: str) -> npt.NDArray[Any]:
        """The rows that hold a word, and how often they do."""
        spelled, last = word.encode("utf-8"), len(self._word_ends) - 1
        at = bisect.bisect_left(range(last), spelled, key=self._word)
        if at == last or self._word(at) != spelled:
            return np.empty(0, POSTING)
        begin, end = (self._posting_ends[at : at + 2] * POSTING.itemsize).tolist()
        return np.frombuffer(self._read(begin, end), POSTING)

    def _word(self, at: int) -> bytes:
        return self._words[self._word_ends[at] : self._word_ends[at + 1]]


class Postings:
    """Those of an index: its segments', less what was deleted from them."""

    def __init__(self, parts: Sequence[tuple[PostingsFile, Live]]) -> None:
        self._parts = parts
        self._rows = sum(len(live.rows) for _, live in parts)
        self._passages = sum(live.passages for _, live in parts)
        lengths = sum(int(file.lengths[live.rows].sum()) for file, live in parts)
        self._average = lengths / self._passages if lengths else 1.0

    def _holding(self, word: str) -> list[npt.NDArray[Any]]:
        """By segment, the live rows that hold a word, and how often."""
        found = [file.holding(word) for file, _ in self._parts]
        return [
            held if live.whole else held[live.rows[held["row"]]]
            for held, (_, live) in zip(found, self._parts, strict=True)
        ]

    def _shares(self, question: str) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
        """What each word of the question adds to the scores of some rows, in order."""
        for word in words([question])[0]:
            by_segment = self._holding(word)
            rarity = np.float32(self._rarity(sum(map(len, by_segment))))
            for held, (file, live) in zip(by_segment, self._parts, strict=True):
                count = held["count"].astype(np.float64)
                shortness = K1 * ((1 - B) + B * file.lengths[held["row"]] / self._average)
                shares = (rarity * (count / (shortness + count))).astype(np.float32)
                yield live.offset + held["row"].astype(np.int64), shares

    def scores(self, question: str, rows: Sequence[int] | None = None) -> npt.NDArray[np.float32]:
        """The BM25 scores (R,) of the passages in these rows, or of every passage (N,) by row."""
        if rows is None:
            scores = np.zeros(self._rows, np.float32)
            for held, shares in self._shares(question):
                scores[held] += shares
            return scores
        wanted, scores = np.asarray(rows, np.int64), np.zeros(len(rows), np.float32)
        for held, shares in self._shares(question):
            if len(held):
                at = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
                scores += np.where(held[at] == wanted, shares[at], np.float32(0))
        return scores

    def _rarity(self, holding: int) -> float:
        """The inverse document frequency of a word that so many passages hold."""
        return math.log(1 + (self._passages - holding + 0.5) / (holding + 0.5))

    def rarity(self, question: str) -> dict[str, float]:
        """BM25's inverse document frequency of each different word that is no function word (English ones are known),
        as `stems` gives it; a word that no passage holds is rarest."""
        return {word: self._rarity(sum(map(len, self._holding(word)))) for word in set(words([question], "en_plus")[0])}

    def search(self, question: str, top_k: int) -> list[int]:
        """Rows of the `top_k` passages that share words with the question, best BM25 score first."""
        scores = self.scores(question)
        rows = np.flatnonzero(scores > 0)
        if len(rows) > top_k:
            rows = rows[scores[rows] >= np.partition(scores[rows], -top_k)[-top_k]]
        return [int(row) for row in rows[np.argsort(-scores[rows], kind="stable")][:top_k]]


def postings_of(texts: Iterable[str]) -> Postings:
    """Postings in memory, of passages that are asked about once."""
    writer = PostingsWriter()
    for text in texts:
        writer.add(text)
    data, arrays = writer.finish()
    live = Live.without((), np.arange(len(arrays["lengths"]) + 1), 0)
    return Postings([(PostingsFile(lambda begin, end: data[begin:end], arrays), live)])
