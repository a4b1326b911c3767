"""How good an answer is, by comparison of text with the expected ones. Pure functions of texts.

Exact match and F1 are those of TriviaQA's official scorer (Joshi et al. 2017): both texts are normalised, and the
expected text that fits best counts. The same normalisation is used for every data set; SQuAD's own scorer differs
in one thing, it drops punctuation where TriviaQA's puts a space. A question of which no expected text is known has no
scores; a question without an answer scores 0.

A chat model answers in a sentence, which is never an exact match with a name: `contains` says whether an expected text
stands in the answer, word for word after normalisation. It is ours and no official score.
"""

from __future__ import annotations

import functools
import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

Scores = dict[str, float]

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
# How models say that the passages hold no answer, after normalisation ("doesn't" is "doesn t" there).
_DECLINES = re.compile(
    r"\b(?:does not|doesn t|do not|don t|did not|didn t) (?:\w+ )?"
    r"(?:contain|say|mention|provide|state|specify|give|include|indicate|answer|have (?:any )?information)"
    r"|\b(?:is|are|was|were) (?:not|never) (?:\w+ )?(?:mentioned|stated|specified|given|provided|answered|known|said)"
    r"|\bno (?:\w+ )?(?:information|mention|answer)\b"
    r"|\b(?:cannot|can not|can t|could not|unable to) (?:be )?(?:\w+ )?(?:answer|determine|find|say|tell)"
    r"|\bunanswerable\b"
)


def normalise(text: str) -> str:
    """Lower case, punctuation to spaces, without articles, white space as single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, expected: str) -> float:
    """1 if both are the same after normalisation, else 0."""
    return float(normalise(answer) == normalise(expected))


def f1(answer: str, expected: str) -> float:
    """The harmonic mean of precision and recall of the answer's words, counted with repetition."""
    words, wanted = normalise(answer).split(), normalise(expected).split()
    same = (Counter(words) & Counter(wanted)).total()
    return 2 * same / (len(words) + len(wanted)) if same else 0.0


def contains(answer: str, expected: str) -> float:
    """1 if the expected words stand in the answer, in order and side by side, else 0."""
    wanted = normalise(expected)
    return float(bool(wanted) and f" {wanted} " in f" {normalise(answer)} ")


def rouge_l(answer: str, expected: Sequence[str]) -> float:
    """ROUGE-L's F-measure (Lin 2004) with stemming, for the expected text that fits best.

    Words of other letters than a to z and digits do not count, as in the original.
    """
    return float(_rouge().score_multi(expected, answer)["rougeL"].fmeasure)


@functools.cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)


def declines(answer: str) -> bool:
    """Whether an answer is empty or says in English that the passages do not hold the answer."""
    text = normalise(answer)
    return not text or _DECLINES.search(text) is not None


def score(answer: str, expected: Sequence[str], unanswerable: bool = False) -> Scores:
    """All scores of one answer, from 0 to 1; empty if nothing is expected.

    To an unanswerable question the expected answer is none: one that declines scores 1, any other 0, as in SQuAD 2.0.
    """
    if unanswerable:
        return dict.fromkeys(("exact_match", "f1", "contains"), float(declines(answer)))
    if not expected:
        return {}
    best = {
        measure.__name__: max(measure(answer, text) for text in expected) for measure in (exact_match, f1, contains)
    }
    return {**best, "rouge_l": rouge_l(answer, expected)}
