"""The table of the field: every benchmark on every data file, as figures to be written down and drawn."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from benchmarks import datastore_sizes, decode
from benchmarks.conditions import conditions
from benchmarks.recorded import Recorded, read_recorded, text_encoder
from benchmarks.simulate import figures, run
from benchmarks.simulation import BLENDS, ORACLES, REPLAYABLE, Simulation, fitted_on, recorded_beside
from decoding.drafters.ngram_trie import NgramTrieDrafter
from indexes.crest_build import build_crest
from indexes.errors import SettingError
from indexes.suffix_array import build_rest
from retrieval.indexing import Progress

RAG, ANSWERS = "llma_rag.jsonl", "mt_bench_vicuna7b_answers.jsonl"
RECORDED = (RAG, "llma_cnndm.jsonl", ANSWERS)
PROMPTS = ("spec_bench_rag.jsonl", "spec_bench_summarization.jsonl", "spec_bench_other.jsonl")
BUDGETS = (8, 16, 32, 64)
LENGTHS, PREFIXES, NUM_DRAFT = range(8, 17), range(2, 6), (8, 16, 32, 64, 128, 256)  # the trie paper's grids
METHODS = (
    "plain", "blend", "trie", "llma", "prompt-lookup", "suffix", "rest", "crest", "token-recycling", "lookahead",
    *decode.TRANSFORMERS,
)  # fmt: skip


PARTS = ("simulate", "stores", "decode")


def check_data(data: Path) -> None:
    """Raises SettingError where a data file is missing."""
    if missing := [name for name in (*RECORDED, *PROMPTS) if not (data / name).is_file()]:
        raise SettingError(
            f"{data} lacks {', '.join(missing)}; give the folder that holds the benchmarks' data: --data"
        )


def collect(
    engines: Sequence[Engine],
    data: Path,
    questions: int,
    max_new_tokens: int,
    python_mb: int,
    progress: Progress,
    parts: Sequence[str] = PARTS,
) -> dict[str, Any]:
    """Run these parts, decoding with each engine."""
    tokenizer = engines[0].tokenizer
    results: dict[str, Any] = {"conditions": conditions(model=engines[0].profile.model)}
    if "simulate" in parts:
        results["simulate"] = [_simulated(tokenizer, data / name, progress) for name in RECORDED]
        results["trie"] = _trie_grid(read_recorded(data / RAG, text_encoder(tokenizer)), progress)
    if "stores" in parts:
        sizes = datastore_sizes.run(tokenizer, data / ANSWERS, True, python_mb * 10**6, progress=progress)
        results["stores"] = sizes
    if "decode" in parts:
        decoded = [_decoded(one, data, questions, max_new_tokens, progress) for one in engines]
        results["decode"] = [result for several in decoded for result in several]
    return results


def _simulated(tokenizer: Any, data: Path, progress: Progress) -> dict[str, Any]:
    """One file's lines for every drafter and budget, and blend's reliability tables."""
    others = recorded_beside(data)
    simulation = Simulation(tokenizer, data, others, progress)
    lines = [
        simulation.line(name, budget) for name in REPLAYABLE for budget in (BUDGETS[:1] if name in ORACLES else BUDGETS)
    ]
    tables = {name: simulation.reliability[name, 32] for name in BLENDS}
    return {
        "data": data.name,
        "fitted_on": fitted_on(others),
        "folds": simulation.folds,
        "lines": lines,
        "reliability": tables,
    }


def _trie_grid(examples: list[Recorded], progress: Progress) -> dict[str, Any]:
    """The paper's own drafter, without the answer so far: n by L_p at 32 nodes, then num_draft at n = 13, L_p = 3."""
    done, total = 0, len(LENGTHS) * len(PREFIXES) + len(NUM_DRAFT)

    def line(n: int, prefix_length: int, nodes: int) -> dict[str, Any]:
        nonlocal done
        progress("Trie settings", done, total)
        done += 1
        sums = run(lambda *_: NgramTrieDrafter(n, prefix_length, output=False), examples, nodes, lambda: None)
        return {"n": n, "prefix_length": prefix_length} | figures("trie", RAG, len(examples), nodes, sums)

    grid = [line(n, prefix, 32) for n in LENGTHS for prefix in PREFIXES]
    ablation = [line(13, 3, nodes) for nodes in NUM_DRAFT]
    progress("Trie settings", total, total)
    return {"grid": grid, "num_draft": ablation}


def _decoded(
    engine: Engine, data: Path, questions: int, max_new_tokens: int, progress: Progress
) -> list[dict[str, Any]]:
    """Each kind of prompt with every method that needs no second model; REST and CREST draft from MT-Bench answers."""
    with tempfile.TemporaryDirectory() as folder:
        stores = _answer_stores(engine, data / ANSWERS, Path(folder))
        return [
            decode.run(engine, data / name, None, METHODS, questions, 0, max_new_tokens, progress, datastores=stores)
            for name in PROMPTS
        ]


def _answer_stores(engine: Engine, answers: Path, folder: Path) -> dict[str, Path]:
    """Datastores of the first turns of recorded answers."""
    read = read_recorded(answers, text_encoder(engine.tokenizer))
    texts = [example.answer for example in read if not example.references]
    build: dict[str, Callable[..., None]] = {"rest": build_rest, "crest": build_crest}
    for kind, write in build.items():
        write(folder / kind, texts, engine.tokenizer_hash, len(engine.tokenizer))
    return {kind: folder / kind for kind in build}
