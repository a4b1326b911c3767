"""Answers given before, as texts to copy from when a similar question comes (LLMA's cached answers).

One namespace per person, such as one session of the page: nobody's words speed up, or show through, in the answers of
another. In memory only. Knows neither tokens nor drafts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

SIMILAR = 0.8  # least cosine of two questions' vectors
MOST_USED = 2
ANSWERS = 64  # kept per namespace
NAMESPACES = 256


class AnswerCache:
    """`encode` gives unit vectors (B, D) of questions. What was used least recently goes first when it is full."""

    def __init__(
        self,
        encode: Callable[[Sequence[str]], Vectors],
        threshold: float = SIMILAR,
        answers: int = ANSWERS,
        namespaces: int = NAMESPACES,
    ) -> None:
        self._encode = encode
        self._threshold = threshold
        self._answers = answers
        self._namespaces = namespaces
        self._lock = threading.Lock()  # a session may end while its last answer is being written
        self._kept: OrderedDict[str, OrderedDict[str, tuple[Vectors, str]]] = OrderedDict()

    def add(self, namespace: str, question: str, answer: str) -> None:
        """Keep an answer; it replaces an earlier one to the same question."""
        vector = self._encode([question])[0]
        with self._lock:
            kept = self._kept.setdefault(namespace, OrderedDict())
            kept[question] = vector, answer
            kept.move_to_end(question)
            self._kept.move_to_end(namespace)
            while len(kept) > self._answers:
                kept.popitem(last=False)
            while len(self._kept) > self._namespaces:
                self._kept.popitem(last=False)

    def similar(self, namespace: str, question: str, count: int = MOST_USED) -> list[str]:
        """The answers of this namespace to the most similar questions, most similar first; none below the threshold."""
        if namespace not in self._kept:
            return []  # without the encoder's work
        vector = self._encode([question])[0]
        with self._lock:
            kept = self._kept.get(namespace)
            if not kept:
                return []
            self._kept.move_to_end(namespace)
            asked = list(kept)
            cosines = np.stack([kept[known][0] for known in asked]) @ vector
            nearest = np.argsort(-cosines, kind="stable")[:count]
            best = [asked[row] for row in nearest if cosines[row] >= self._threshold]
            for known in reversed(best):
                kept.move_to_end(known)
            return [kept[known][1] for known in best]

    def forget(self, namespace: str) -> None:
        """Drop all answers of a namespace."""
        with self._lock:
            self._kept.pop(namespace, None)

    def reset(self) -> None:
        """Drop all answers."""
        with self._lock:
            self._kept.clear()
