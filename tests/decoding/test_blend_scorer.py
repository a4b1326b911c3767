"""The scorer: its probabilities against numpy, and the file that they come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.blend.features import COUNT, FEATURES
from decoding.blend.scorer import SHIPPED, Scorer, load_scorer, log_probabilities, save_scorer
from indexes.errors import SettingError
from indexes.ngram_counts import Array
from tests.decoding.blending import random_scorer, scorer_of


def logs(scorer: Scorer, features: Array, shift: float = 0.0) -> Array:
    out = np.full(len(features) + 1, 7, np.float32)
    log_probabilities(scorer, features, len(features), shift, out)
    assert out[-1] == 7
    return out[:-1]


@given(st.integers(0, 999), st.integers(0, 20), st.floats(-3, 3))
def test_probabilities_are_a_softmax_of_the_scores_and_of_nought(seed: int, count: int, shift: float) -> None:
    scorer = random_scorer(seed)
    features = np.random.default_rng(seed).normal(0, 1, (count, COUNT)).astype(np.float32)
    scores = np.maximum(features @ scorer.weights.T + scorer.bias, 0) @ scorer.out + scorer.last[0] + shift
    expected = scores - np.logaddexp.reduce(np.r_[0.0, scores])
    assert logs(scorer, features, shift) == pytest.approx(expected, abs=1e-3)


def test_a_probability_worked_by_hand() -> None:
    features = np.zeros((2, COUNT), np.float32)
    features[1, 3] = 2
    scorer = scorer_of({FEATURES[3]: 1.0}, last=-1.0)  # scores -1 and 1
    whole = 1 + np.exp(-1) + np.exp(1)
    assert np.exp(logs(scorer, features)) == pytest.approx([np.exp(-1) / whole, np.exp(1) / whole])


def test_what_is_no_candidate_keeps_a_share() -> None:
    scorer = scorer_of({}, last=np.log(3))
    assert np.exp(logs(scorer, np.zeros((1, COUNT), np.float32))) == pytest.approx([0.75])


@pytest.mark.parametrize("last", [-1e4, 1e4])
def test_huge_scores_do_not_overflow(last: float) -> None:
    found = logs(scorer_of({}, last), np.zeros((4, COUNT), np.float32))
    assert found == pytest.approx([last] * 4 if last < 0 else np.log([0.25] * 4), abs=1e-3)


def test_what_was_saved_is_read_again_to_four_decimals(tmp_path: Path) -> None:
    scorer = random_scorer(5)
    save_scorer(scorer, tmp_path / "s.json", {"fitted_on": "nothing"})
    for before, after in zip(scorer, load_scorer(tmp_path / "s.json"), strict=True):
        assert after.dtype == np.float32
        assert after == pytest.approx(before, abs=5.1e-5)
    assert json.loads((tmp_path / "s.json").read_text())["about"] == {"fitted_on": "nothing"}


def test_the_shipped_scorer_is_made_for_these_features() -> None:
    scorer = load_scorer()
    assert scorer.weights.shape[1] == len(FEATURES) == COUNT
    assert all(np.isfinite(array).all() for array in scorer)
    assert load_scorer(SHIPPED) is load_scorer(SHIPPED)


def test_the_shipped_scorer_prefers_a_longer_match() -> None:
    features = np.zeros((2, COUNT), np.float32)
    features[:, FEATURES.index("follows a match")] = 1
    features[0, FEATURES.index("longest match in references: 1")] = 1
    features[0, FEATURES.index("how much shorter")] = 1
    features[1, FEATURES.index("longest match in references: 10+")] = 1
    features[1, FEATURES.index("no shorter than the best")] = 1
    less, more = logs(load_scorer(), features).tolist()
    assert more > less + 1


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        save_scorer(random_scorer(1), path, {})
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held))

    return write


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_text("{"), "Expecting property name"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "can't decode byte"),
        (lambda path: path.write_text("{}"), "'features'"),
        (lambda path: path.write_text("[1]"), "list indices"),
        (edited(lambda held: held["features"].reverse()), "it was fitted for other features"),
        (edited(lambda held: held.pop("bias")), "'bias'"),
        (edited(lambda held: held.update(bias=[1, 2])), r"its arrays have shapes \[\(3, 61\), \(2,\)"),
        (edited(lambda held: held.update(bias=7)), "unsized|shapes"),
        (edited(lambda held: held.update(out=[[1, 2], [3]])), "inhomogeneous"),
        (edited(lambda held: held.update(last=[float("nan")])), "not all of its numbers are finite"),
        (edited(lambda held: held.update(last=["x"])), "could not convert"),
        (edited(lambda held: held.update(last=[{}])), "must be a string or a real number"),
    ],
)
def test_a_bad_file_is_refused_with_the_reason(tmp_path: Path, write: Callable[[Path], object], reason: str) -> None:
    path = tmp_path / "scorer.json"
    write(path)
    with pytest.raises(SettingError, match=rf"scorer\.json holds no fitted scorer: .*({reason}).*benchmarks fit"):
        load_scorer(path)
