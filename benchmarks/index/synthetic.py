"""Vectors and passages like those of real text, in any number, from a seed.

A passage's vector is a sum of draws that it shares with others: with all, with some 300, some 30 and some 3, in groups
of log-normal sizes, and of one of its own. Variances fall as exp(-i / 192) / sqrt(i), in a random rotation. Shares and
spectrum were chosen so that 12,000 vectors of 384 dimensions are like MiniLM's of as many paragraphs of docstrings:
spectrum, length of the mean, cosines of neighbours, and how many of these are in a question's clusters
(docs/lab-notes.md). Questions are passages that are not in the index. Words are drawn by Zipf's law. Knows no index.
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
SHARED = ((300, 0.2), (30, 0.2), (3, 0.35))  # passages of a group, on average, and their share of the variance
SHARED_BY_ALL, OWN = 0.1, 0.15
DECAY, TAIL = 0.5, 192  # of the spectrum; TAIL in dimensions
VOCABULARY = 100_000
LETTERS = list("etaoinshrdlucmfw")


class Synthetic:
    """`count` unit vectors of `dimension`, and passages of `words` words each; the same for the same seed."""

    def __init__(self, count: int, dimension: int, words: int, seed: int) -> None:
        self.count, self.dimension, self._words, self._seed = count, dimension, words, seed
        draw = np.random.default_rng([seed, dimension])
        rotation = np.linalg.qr(draw.standard_normal((dimension, dimension)))[0]
        places = np.arange(1, dimension + 1)
        variances = places**-DECAY * np.exp(-places / TAIL)
        self._basis = np.asarray(np.sqrt(variances / variances.sum())[:, None] * rotation, np.float32)

    def write(self, path: Path, questions: int, progress: Progress) -> None:
        """Write vectors (N + Q, D) in half precision, as a .npy file; the last ones are the questions'."""
        draw = np.random.default_rng([self._seed, self.count])
        every = self.count + questions
        groups = [self._groups(draw, max(1, every // size), share) for size, share in SHARED]
        common = self._drawn(draw, 1, SHARED_BY_ALL)
        scratch = path.with_suffix(".part")
        out: Any = np.lib.format.open_memmap(scratch, "w+", np.float16, (every, self.dimension))
        for at in range(0, every, AT_ONCE):
            progress("Making vectors", at, every)
            number = min(AT_ONCE, every - at)
            made = common + self._drawn(draw, number, OWN)
            for middles, shares in groups:
                made += middles[np.searchsorted(shares, draw.random(number) * shares[-1])]
            out[at : at + number] = made / np.linalg.norm(made, axis=1, keepdims=True)
        out.flush()
        scratch.replace(path)
        progress("Making vectors", every, every)

    def _groups(self, draw: np.random.Generator, number: int, share: float) -> tuple[Any, npt.NDArray[np.float64]]:
        """What the passages of each group share (G, D), in half precision for there may be many, and summed sizes."""
        middles = np.concatenate(
            [self._drawn(draw, min(AT_ONCE, number - at), share).astype(np.float16) for at in range(0, number, AT_ONCE)]
        )
        return middles, np.cumsum(draw.lognormal(0, 1, number))

    def _drawn(self, draw: np.random.Generator, number: int, share: float) -> Vectors:
        drawn = draw.standard_normal((number, self.dimension), np.float32) @ self._basis
        return np.asarray(np.sqrt(share) * drawn, np.float32)

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
