from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.answering.engine import Engine
from app.page.preferences import answer_options, chosen, defaults
from app.setup.settings import Paths, Settings, paths


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(Settings(temperature=0.3, drafter="trie"), home=Paths(tmp_path / "data", paths().cache))


def test_who_chose_nothing_has_what_is_set(engine: Engine) -> None:
    assert chosen(engine, {}) == defaults(engine)
    options = answer_options(engine, {})
    assert (options.drafter, options.max_nodes, options.top_k) == ("trie", None, engine.profile.top_k)
    assert options.sampling == engine.sampling


def test_what_is_chosen_reaches_the_engine(engine: Engine) -> None:
    kept = {"drafter": "plain", "budget": 4, "temperature": 0.9, "top_k": 2, "length": 33}
    options = answer_options(engine, kept)
    assert (options.drafter, options.max_nodes, options.top_k, options.max_new_tokens) == ("plain", 4, 2, 33)
    assert options.sampling is not None
    assert options.sampling.temperature == 0.9


@pytest.mark.parametrize(
    "kept",
    [
        {"drafter": "draft-model"},
        {"drafter": ["plain"]},
        {"budget": -1},
        {"budget": 10**9},
        {"temperature": float("nan")},
        {"temperature": "hot"},
        {"temperature": True},
        {"top_k": 0},
        {"top_k": None},
        {"length": 1e300},
        {"something": "else"},
    ],
)
def test_what_cannot_be_counts_as_not_chosen(engine: Engine, kept: dict[str, Any]) -> None:
    assert chosen(engine, kept) == defaults(engine)
