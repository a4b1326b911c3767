"""The simulate benchmark: which drafters can be replayed, and how blend is cross-fitted.

Blend is never fitted on an answer that it is measured on: its scorer and its phrase stores come from the other folds,
and from the other recorded files beside the data (which, and the folds, are printed).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from benchmarks.fitting import fit, folds, stores
from benchmarks.recorded import Recorded, holds_answers, read_recorded, text_encoder
from benchmarks.simulate import BINS, Oracle, Replayed, calibration_error, figures, replay, run
from decoding.blend.scorer import Scorer
from decoding.blend.token_table import TokenTable, read_table
from decoding.drafter import Drafter
from decoding.drafters import make_drafter
from decoding.drafters.blend import BlendDrafter
from decoding.drafters.suffix_tree import TUNED, SuffixTreeDrafter
from indexes.errors import SettingError
from indexes.ngram_counts import NgramCounts
from retrieval.indexing import Progress

ORACLES = {"oracle": False, "oracle-jump": True}
COLD = "blend-cold"  # blend as a first question meets it: its phrase stores are empty
BLENDS = ("blend", COLD)
REPLAYABLE = ("plain", "prompt-lookup", "llma", "suffix", "suffix-tuned", "trie", COLD, "blend", *ORACLES)
FOLDS = 5


class Simulation:
    """Recorded answers of one file, and whatever blend was fitted to for each of their folds, fitted once."""

    def __init__(self, tokenizer: Any, data: Path, fit_on: Sequence[Path], progress: Progress) -> None:
        encode = text_encoder(tokenizer)
        self.data = data
        self.examples = read_recorded(data, encode)
        if len(self.examples) < FOLDS:
            raise SettingError(f"{data} has {len(self.examples)} answers of two tokens and more; {FOLDS} are needed")
        self.others = [example for path in fit_on for example in read_recorded(path, encode)]
        self.table: TokenTable = read_table(tokenizer, len(tokenizer))
        self.folds = folds(self.examples, FOLDS)
        self.reliability: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._progress = progress

    def training(self, fold: int) -> list[Recorded]:
        """All examples but this fold's, and those of other files."""
        held_out = set(self.folds[fold])
        return [one for index, one in enumerate(self.examples) if index not in held_out] + self.others

    @functools.cached_property
    def _fitted(self) -> list[tuple[Scorer, NgramCounts]]:
        fitted = []
        for fold in range(FOLDS):
            self._progress("Fitting blend", fold, FOLDS)
            training = self.training(fold)
            fitted.append((fit(training, self.table), stores(training, len(self.table))[1]))
        self._progress("Fitting blend", FOLDS, FOLDS)
        return fitted

    def _maker(self, name: str) -> Callable[[int, Recorded], Drafter]:
        if name in BLENDS:
            blends = [
                BlendDrafter(self.table, None, (), scorer)
                if name == COLD
                else BlendDrafter(self.table, passages, [one.answer for one in self.training(fold)], scorer)
                for fold, (scorer, passages) in enumerate(self._fitted)
            ]
            replay(blends[0], self.examples[self.folds[0][0]], 4, Replayed())  # compiles: not part of any figure
            fold_of = {index: fold for fold, indices in enumerate(self.folds) for index in indices}

            def fresh(index: int, _: Recorded) -> Drafter:
                drafter = blends[fold_of[index]]
                drafter.reset()
                return drafter

            return fresh
        if name in ORACLES:
            return lambda _, example: Oracle(example.answer, ORACLES[name])
        if name == "suffix-tuned":
            return lambda _, __: SuffixTreeDrafter(*TUNED)
        return lambda _, __: make_drafter(name)

    def line(self, name: str, max_nodes: int) -> dict[str, Any]:
        """Replay every example with one drafter. An oracle is a ceiling, so it may draft whole answers."""
        done, total = 0, len(self.examples)
        if name in ORACLES:
            max_nodes = max(len(example.answer) for example in self.examples)

        def tick() -> None:
            nonlocal done
            done += 1
            self._progress(f"Replaying with {name}", done, total)

        sums = run(self._maker(name), self.examples, max_nodes, tick)
        line = figures(name, self.data.name, total, max_nodes, sums)
        if name in BLENDS:
            self.reliability[name, max_nodes] = reliability(sums.bins)
            line["calibration_error"] = round(calibration_error(sums.bins), 4)
        return line


def reliability(bins: Any) -> list[dict[str, Any]]:
    """The reliability table: per tenth of predicted probability how many nodes, predicted and accepted shares."""
    return [
        {"predicted_from": index / BINS, "nodes": int(nodes), "predicted": round(predicted / nodes, 3),
         "accepted": round(accepted / nodes, 3)}
        for index, (nodes, predicted, accepted) in enumerate(bins.tolist())
        if nodes
    ]  # fmt: skip


def simulate(
    tokenizer: Any, data: Path, names: Sequence[str], max_nodes: int, fit_on: Sequence[Path], progress: Progress
) -> dict[str, Any]:
    """Replay `data` with each drafter. Raises SettingError for a drafter that replay cannot serve."""
    if unknown := [name for name in names if name not in REPLAYABLE]:
        raise SettingError(
            f"{', '.join(unknown)} cannot be replayed (unknown, or needs a model's outputs or a datastore); "
            f"choose all, {', '.join(REPLAYABLE)}; for the others there is python -m benchmarks decode"
        )
    simulation = Simulation(tokenizer, data, fit_on, progress)
    lines = [simulation.line(name, max_nodes) for name in names]
    result: dict[str, Any] = {"conditions": conditions(data=data.name, max_nodes=max_nodes), "drafters": lines}
    if chosen := [name for name in BLENDS if name in names]:
        result["conditions"]["fitted_on"] = fitted_on(fit_on)
        result["folds"] = simulation.folds
        result["reliability"] = simulation.reliability[chosen[0], max_nodes]
    return result


def fitted_on(others: Sequence[Path]) -> str:
    """What blend's scorer, and its phrase stores, are made from, in words."""
    return f"{FOLDS - 1} of {FOLDS} folds" + "".join(f" + {path.name}" for path in others)


def recorded_beside(data: Path) -> list[Path]:
    """The other recorded answers in the folder whose files' names begin alike, up to the first underscore."""
    alike = sorted(data.parent.glob(f"{data.name.split('_')[0]}_*.jsonl"))
    return [path for path in alike if path != data and holds_answers(path)]
