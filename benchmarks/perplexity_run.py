"""Perplexity of the target model in several number formats, on Python's language reference.

Its passes are those of decoding: a chain is read behind a cache, so what is measured is what answers are made with.
Windows do not overlap, and every token but the first is scored once, after at most a window's other tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from app.answering.engine import Engine
from benchmarks.conditions import conditions
from decoding.cache_memory import TellsMemory
from decoding.target import TargetModel
from decoding.targets import load_target
from decoding.tree import chain
from indexes.errors import SettingError
from retrieval.indexing import Progress
from retrieval.python_docs import python_docs

REFERENCE = "float32"
ROWS = 64  # of a pass


@dataclass(frozen=True, slots=True)
class Scores:
    """What a target said of a text of T + 1 tokens.

    log_probs  (T,) float64, natural logarithms: of each token but the first, after those before it in its window
    choices    (T,) the likeliest tokens there
    """

    log_probs: torch.Tensor
    choices: torch.Tensor

    @property
    def perplexity(self) -> float:
        """exp of the mean negative logarithm."""
        return math.exp(-float(self.log_probs.mean()))


def score(target: TargetModel, tokens: Sequence[int], window: int, progress: Progress, name: str = "") -> Scores:
    """Score a text in windows of so many tokens. Raises SettingError for windows that the model cannot read."""
    if not 2 <= window <= target.context_limit:
        raise SettingError(f"window is {window}; this model reads 2 to {target.context_limit} tokens")
    log_probs, choices = [], []
    for start in range(0, len(tokens) - 1, window):
        progress(f"Scoring {name}".strip(), start, len(tokens) - 1)
        read = tokens[start : min(start + window, len(tokens) - 1)]
        logits = [target.prefill(read[:1])[None].clone()]
        for at in range(1, len(read), ROWS):
            some = read[at : at + ROWS]
            logits.append(target.forward(some[0], chain(some[1:])).clone())
            target.keep(range(len(some) - 1))
        wide = torch.cat(logits).float()
        following = torch.tensor(tokens[start + 1 : start + 1 + len(read)], device=wide.device)
        found = wide.log_softmax(dim=-1).gather(1, following[:, None])[:, 0]
        log_probs.append(found.double().cpu())
        choices.append(wide.argmax(dim=-1).cpu())
    progress(f"Scoring {name}".strip(), len(tokens) - 1, len(tokens) - 1)
    target.truncate(0)
    return Scores(torch.cat(log_probs), torch.cat(choices))


def line(name: str, scores: Scores, reference: Scores, target: TargetModel) -> dict[str, Any]:
    """A number format's line of the table."""
    return {
        "dtype": name,
        "perplexity": round(scores.perplexity, 4),
        "ratio": round(scores.perplexity / reference.perplexity, 5),
        "top_1_agreement": round(float((scores.choices == reference.choices).double().mean()), 5),
        "model_mb": round(target.weight_bytes / 10**6, 2) if isinstance(target, TellsMemory) else None,
        "target": target.kind,
    }


def run(engine: Engine, dtypes: Sequence[str], count: int, window: int, progress: Progress) -> dict[str, Any]:
    """One line per number format, float32 first: the others are compared with it. One model is loaded at a time."""
    tokens = corpus_tokens(engine.tokenizer, count)
    lines: list[dict[str, Any]] = []
    reference: Scores | None = None
    for name in dict.fromkeys([REFERENCE, *dtypes]):
        target = load_target(engine.model_folder, engine.device, name, engine.settings.target)
        scores = score(target, tokens, window, progress, name)
        reference = reference or scores
        lines.append(line(name, scores, reference, target))
        del target  # before the next one takes its place in memory
    chosen = conditions(
        model=engine.profile.model,
        device=engine.device,
        text="pydoc_data.topics",
        tokens=len(tokens) - 1,
        window=window,
    )
    return {"conditions": chosen, "formats": lines}


def corpus_tokens(tokenizer: Any, count: int) -> list[int]:
    """The first `count` tokens of the built-in corpus, and one before them that begins the text."""
    found: list[int] = []
    for document in python_docs():
        found += tokenizer(document.text + "\n\n", add_special_tokens=False).input_ids
        if len(found) > count:
            break
    return found[: count + 1]
