from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from app.answering.engine import Engine
from app.setup.settings import Settings
from benchmarks import relevance_run
from benchmarks.relevance_run import Case, fitted, squad_cases
from indexes.errors import SettingError
from retrieval.relevance import FITTED
from tests.indexes.small import no_progress

SHARED = Path(__file__).parents[3] / "shared" / "data" / "squad2_dev.json"


def case(answered: bool, *figures: tuple[float, float, float], right: tuple[bool, ...] = ()) -> Case:
    return Case("fit", "x", answered, (np.array(figures),), right or (False,) * len(figures))


def test_fitted_numbers_part_right_passages_from_others() -> None:
    right = [case(True, (0.6 + x, 0.7, 0.8), (0.1, 0.1, 0.1), right=(True, False)) for x in (0.0, 0.1)]
    wrong = [case(False, (0.1 + x, 0.3, 0.2), (0.2, 0.3, 0.1)) for x in (0.0, 0.1)]
    fit = fitted([*right, *wrong])
    assert fit.encoder == FITTED.encoder
    assert min(item.chance(fit) for item in right) > 0.9
    assert max(item.chance(fit) for item in wrong) < 0.1


def test_a_question_that_is_never_judged_is_never_refused() -> None:
    assert Case("fit", "x", True, None, ()).chance(FITTED) == 1.0


def test_a_squad_file_is_asked_with_and_without_each_article(engine: Engine, tmp_path: Path) -> None:
    told = (
        ("cape", "The lighthouse was built of white granite by Ada Thorne.", "Who built the lighthouse?", "Ada"),
        ("bees", "A queen bee lays two thousand eggs a day in spring.", "How many eggs does a queen bee lay?", "two"),
        ("tea", "Green tea is steamed, black tea is left to oxidise.", "How is green tea made?", "steamed"),
        ("chess", "A bishop moves along diagonals over any distance.", "How does a bishop move?", "diagonals"),
    )
    articles = [
        {"title": name, "paragraphs": [{"context": text, "qas": [{"question": asked, "answers": [{"text": answer}]}]}]}
        for name, text, asked, answer in told
    ]
    (tmp_path / "squad.json").write_text(json.dumps({"data": articles}))
    cases = list(squad_cases(engine, tmp_path / "squad.json", 4, no_progress))
    assert [(item.half, item.answered) for item in cases] == [("fit", True), ("fit", False)] * 2 + [
        ("report", True), ("report", False),
    ] * 2  # fmt: skip
    assert min(item.chance(FITTED) for item in cases if item.answered) > 0.5
    assert max(item.chance(FITTED) for item in cases if not item.answered) < 0.1
    assert all(any(item.right) == item.answered for item in cases)


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="relevance is judged with"):
        relevance_run.run(Engine(Settings(reranker="none")), tmp_path, 1, False, None, no_progress)


@pytest.mark.skipif(not SHARED.exists(), reason=f"{SHARED} is not there")
def test_few_answerable_questions_are_refused_and_most_others_are(engine: Engine) -> None:
    cases = list(squad_cases(engine, SHARED, 6, no_progress))
    refused = {
        answered: sum(item.chance(FITTED) < Settings().min_relevance for item in cases if item.answered is answered)
        for answered in (True, False)
    }
    assert len(cases) == 2 * 60
    assert refused[True] <= 4
    assert refused[False] >= 50
