"""Vectors and passages like those of real text, in any number, from a seed.

Passages belong to topics of log-normal sizes, a hundred each on average. Topics, and passages around their topic, are
drawn with variances that fall as 1 / i^0.9 over the dimensions, in a random rotation: the spectrum of MiniLM's vectors
of SQuAD's sentences (docs/lab-notes.md). A question is a passage's vector with as much noise as leaves the cosine
between them at that of a real question and its passage. Words are drawn by Zipf's law. Knows no index.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrieval.indexing import Progress

Vectors = npt.NDArray[np.float32]

AT_ONCE = 50_000
PER_TOPIC = 100
DECAY = 0.9
NOISE = 0.8  # of a question, beside a passage's vector of length 1
VOCABULARY = 100_000
LETTERS = list("etaoinshrdlucmfw")


class Synthetic:
    """`count` unit vectors of `dimension`, and passages of `words` words each; the same for the same seed."""

    def __init__(self, count: int, dimension: int, words: int, seed: int) -> None:
        self.count, self.dimension, self._words, self._seed = count, dimension, words, seed
        draw = np.random.default_rng([seed, dimension])
        rotation = np.linalg.qr(draw.standard_normal((dimension, dimension)))[0]
        self._basis = np.asarray(np.arange(1, dimension + 1)[:, None] ** (-DECAY / 2) * rotation, np.float32)

    def write(self, path: Path, progress: Progress) -> None:
        """Write the vectors (N, D) in half precision, as a .npy file."""
        draw = np.random.default_rng([self._seed, self.count])
        topics = max(1, self.count // PER_TOPIC)
        centres = np.concatenate([self._drawn(draw, min(AT_ONCE, topics - at)) for at in range(0, topics, AT_ONCE)])
        sizes = draw.lognormal(0, 1, topics)
        scratch = path.with_suffix(".part")
        out: Any = np.lib.format.open_memmap(scratch, "w+", np.float16, (self.count, self.dimension))
        for at in range(0, self.count, AT_ONCE):
            progress("Making vectors", at, self.count)
            number = min(AT_ONCE, self.count - at)
            of_topics = centres[draw.choice(topics, number, p=sizes / sizes.sum())]
            out[at : at + number] = unit(of_topics + self._drawn(draw, number))
        out.flush()
        scratch.replace(path)
        progress("Making vectors", self.count, self.count)

    def questions(self, vectors: npt.NDArray[np.float16], number: int) -> Vectors:
        """Vectors (Q, D) of questions about that many passages."""
        draw = np.random.default_rng([self._seed, self.count, 1])
        about = np.sort(draw.choice(self.count, min(number, self.count), replace=False))
        return unit(vectors[about].astype(np.float32) + NOISE * unit(self._drawn(draw, len(about))))

    def _drawn(self, draw: np.random.Generator, number: int) -> Vectors:
        return np.asarray(draw.standard_normal((number, self.dimension), np.float32) @ self._basis, np.float32)

    def texts(self, progress: Progress) -> Iterator[str]:
        """The passages' texts."""
        draw = np.random.default_rng([self._seed, 2])
        lengths = draw.integers(3, 11, VOCABULARY)
        vocabulary = np.array(["".join(draw.choice(LETTERS, length)) for length in lengths], object)
        shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
        for at in range(0, self.count, 1000):
            progress("Indexing passages", at, self.count)
            drawn = np.searchsorted(shares, draw.random((1000, self._words)) * shares[-1])
            yield from map(" ".join, vocabulary[drawn][: self.count - at])
        progress("Indexing passages", self.count, self.count)


def unit(vectors: Vectors) -> Vectors:
    """Vectors (N, D) of length 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
