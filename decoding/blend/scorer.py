"""From features to probabilities: a small network, the same for every candidate, and a softmax over all of them.

p(candidate) = exp(s) / (1 + sum of all exp(s)): the 1 stands for every token that is no candidate. The numbers are
fitted by `python -m benchmarks fit` and ship as blend.json.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decoding.blend.features import FEATURES
from indexes.compiled import compiled
from indexes.errors import SettingError
from indexes.ngram_counts import Array

SHIPPED = Path(__file__).with_name("blend.json")


class Scorer(NamedTuple):
    """One hidden layer of H rectified units: weights (H, F), bias (H,), out (H,), and the last bias (1,)."""

    weights: Array
    bias: Array
    out: Array
    last: Array


@compiled(fastmath=True)
def log_probabilities(scorer: Scorer, features: Array, count: int, shift: float, out: Array) -> None:
    """Log probability of each of `count` candidates into `out`; `shift` is added to every score."""
    highest = np.float32(0)
    for index in range(count):
        score = scorer.last[0] + np.float32(shift)
        for unit in range(len(scorer.bias)):
            value = scorer.bias[unit]
            for feature in range(scorer.weights.shape[1]):
                value += features[index, feature] * scorer.weights[unit, feature]
            score += max(value, np.float32(0)) * scorer.out[unit]
        out[index] = score
        highest = max(highest, score)
    total = np.exp(-highest)
    for index in range(count):
        total += np.exp(out[index] - highest)
    norm = highest + np.log(total)
    for index in range(count):
        out[index] -= norm


def save_scorer(scorer: Scorer, path: Path, about: dict[str, Any]) -> None:
    """Write the numbers as JSON, with what they were fitted on."""
    numbers = {name: np.round(array.astype(float), 4).tolist() for name, array in scorer._asdict().items()}
    text = json.dumps({"about": about, "features": list(FEATURES), **numbers}, separators=(",", ":"))
    path.write_text(text.replace('],"', '],\n"') + "\n", "utf-8")


@functools.cache
def load_scorer(path: Path = SHIPPED) -> Scorer:
    """Read fitted numbers. Raises SettingError for a file that does not hold numbers for these features."""
    try:
        held = json.loads(path.read_text("utf-8"))
        if held["features"] != list(FEATURES):
            raise ValueError("it was fitted for other features")
        scorer = Scorer(*(np.ascontiguousarray(held[name], np.float32) for name in Scorer._fields))
        units = len(scorer.bias)
        shapes = [array.shape for array in scorer]
        if shapes != [(units, len(FEATURES)), (units,), (units,), (1,)]:
            raise ValueError(f"its arrays have shapes {shapes}")
        if not all(np.isfinite(array).all() for array in scorer):
            raise ValueError("not all of its numbers are finite")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{path} holds no fitted scorer: {error}; make it: python -m benchmarks fit") from error
    return scorer
