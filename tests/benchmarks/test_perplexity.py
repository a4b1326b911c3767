"""Perplexity: every token is scored once, as reading its window at once would, in every number format."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from app.answering.engine import Engine
from app.setup.settings import Paths, Settings
from benchmarks import perplexity_run
from benchmarks.__main__ import cli
from benchmarks.perplexity_run import Scores, corpus_tokens, line, run, score
from decoding.target import TargetModel
from indexes.errors import SettingError
from tests.decoding.tiny import CONTEXT, VOCABULARY, WIDE, kernel_target, prompt_tokens, tiny_model

WINDOW = 80  # more than the rows of a pass
TEXT = prompt_tokens(5, 2 * WINDOW + 30)


def silent(what: str, done: int, total: int) -> None:
    assert 0 <= done <= total


def expected_log_probs(model: Any, tokens: tuple[int, ...], window: int) -> torch.Tensor:
    found = []
    for start in range(0, len(tokens) - 1, window):
        part = torch.tensor(tokens[start : start + window + 1])
        with torch.inference_mode():
            logits = model(part[None, :-1]).logits[0]
        found.append(logits.log_softmax(dim=-1).gather(1, part[1:, None])[:, 0])
    return torch.cat(found)


@pytest.mark.parametrize("length", [2, 64, WINDOW, WINDOW + 1, WINDOW + 2, len(TEXT)])
def test_every_token_but_the_first_is_scored_once_as_its_window_is_read_at_once(length: int) -> None:
    model = tiny_model("llama", WIDE)
    scores = score(kernel_target(model, "float32", 1), TEXT[:length], WINDOW, silent)
    expected = expected_log_probs(model, TEXT[:length], WINDOW)
    assert scores.log_probs.shape == scores.choices.shape == (length - 1,)
    torch.testing.assert_close(scores.log_probs, expected, rtol=0, atol=1e-4)
    assert scores.perplexity == pytest.approx(math.exp(-float(expected.mean())), rel=1e-4)


def test_a_model_that_knows_nothing_is_as_perplexed_as_its_vocabulary_is_large() -> None:
    model = tiny_model("llama", WIDE)
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert score(kernel_target(model, "int8", 1), TEXT, WINDOW, silent).perplexity == pytest.approx(VOCABULARY)


def test_a_line_compares_with_the_reference() -> None:
    target = kernel_target(tiny_model("llama", WIDE), "bfloat16", 1)
    reference = Scores(torch.log(torch.tensor([0.5, 0.5, 0.5, 0.5])), torch.tensor([1, 2, 3, 4]))
    other = Scores(torch.log(torch.tensor([0.25, 0.25, 0.25, 0.25])), torch.tensor([1, 2, 3, 5]))
    found = line("bfloat16", other, reference, target)
    assert (found["perplexity"], found["ratio"], found["top_1_agreement"]) == (4.0, 2.0, 0.75)
    assert found["model_mb"] == round(target.weight_bytes / 10**6, 2)


def test_every_format_is_measured_after_float32_and_near_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_folder: Path, _device: str, number_format: str, _choice: str) -> TargetModel:
        return kernel_target(tiny_model("llama", WIDE), number_format, 1)

    monkeypatch.setattr(perplexity_run, "load_target", load)
    monkeypatch.setattr(perplexity_run, "corpus_tokens", lambda _, count: list(TEXT[: count + 1]))
    engine = Engine(Settings(), home=Paths(tmp_path, tmp_path))
    vars(engine).update(tokenizer=None, model_folder=tmp_path)
    result = run(engine, ["int8", "bfloat16", "int8"], 100, WINDOW, silent)
    assert result["conditions"]["tokens"] == 100
    assert [line["dtype"] for line in result["formats"]] == ["float32", "int8", "bfloat16"]
    assert (result["formats"][0]["ratio"], result["formats"][0]["top_1_agreement"]) == (1.0, 1.0)
    for found in result["formats"][1:]:
        assert 0.9 < found["ratio"] < 1.1
        assert found["top_1_agreement"] > 0.8
        assert found["model_mb"] < result["formats"][0]["model_mb"]


@pytest.mark.parametrize("window", [1, CONTEXT + 1])
def test_windows_that_the_model_cannot_read_are_refused(window: int) -> None:
    with pytest.raises(SettingError, match=f"window is {window}; this model reads 2 to {CONTEXT} tokens"):
        score(kernel_target(tiny_model("llama", WIDE), "float32", 1), TEXT, window, silent)


def test_the_text_is_the_built_in_corpus_up_to_the_limit() -> None:
    def letters(text: str, add_special_tokens: bool) -> Any:
        return SimpleNamespace(input_ids=[ord(letter) for letter in text])

    assert "".join(map(chr, corpus_tokens(letters, 11))) == 'The "assert"'
    assert len(corpus_tokens(letters, 10**9)) > 400_000


def test_an_unknown_number_format_is_refused_before_anything_loads() -> None:
    done = CliRunner().invoke(cli, ["perplexity", "--dtype", "int4"])
    assert isinstance(done.exception, SettingError)
    assert "some of float32, bfloat16, float16, int8" in str(done.exception)
