"""Recall of every retrieval stage over SQuAD paragraphs, and what each costs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.data import Question, read_squad, sample
from indexes.passages import Chunk, Document
from indexes.store import EncodedDocument, open_index, write_index
from indexes.token_vectors import quantise
from retrieval.follow_ups import alone
from retrieval.indexing import Progress
from retrieval.retriever import Rankings

DEPTHS = (1, 5, 10, 100)
STAGES = ("dense", "lexical", "fused", "reranked")


def run(engine: Engine, data: Path, count: int, seed: int, rest: bool, progress: Progress) -> dict[str, Any]:
    """Index every paragraph as one passage, ask `count` seeded questions, and score each stage."""
    paragraphs, questions = read_squad(data)
    asked = sample(questions, count, seed, rest)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "squad"
        write_index(folder, engine.index_settings(), encoded(engine, paragraphs, progress))
        index = open_index(folder)
        retriever = engine.retriever(index)
        results: list[tuple[Question, Rankings]] = []
        for done, question in enumerate(asked):
            progress("Asking", done, len(asked))
            results.append((question, retriever.rank(alone(question.text))))
        progress("Asking", len(asked), len(asked))
        index.passages.close()
    chosen = conditions(
        data=data.name,
        paragraphs=len(paragraphs),
        questions=len(asked),
        seed=seed,
        held_out=rest,
        encoder=engine.profile.encoder,
        reranker=engine.profile.reranker,
        candidates=engine.settings.candidates,
        device=engine.device,
        vectors=index.layout,
    )
    return {"conditions": chosen, "stages": [_stage(stage, results) for stage in STAGES]}


def encoded(engine: Engine, paragraphs: Sequence[str], progress: Progress) -> list[EncodedDocument]:
    """Every paragraph as a document of one passage."""
    documents: list[EncodedDocument] = []
    for begin in range(0, len(paragraphs), 64):
        progress("Encoding paragraphs", begin, len(paragraphs))
        batch = paragraphs[begin : begin + 64]
        vectors, tokens = engine.encoder.encode_tokens(batch)
        for offset, text in enumerate(batch):
            document = Document(f"squad/{begin + offset}", str(begin + offset), text, "")
            row = vectors[offset : offset + 1]
            documents.append(EncodedDocument(document, [Chunk(0, text)], row, [quantise(tokens[offset])]))
    progress("Encoding paragraphs", len(paragraphs), len(paragraphs))
    return documents


def _stage(stage: str, results: list[tuple[Question, Rankings]]) -> dict[str, Any]:
    ranks = []
    for question, rankings in results:
        rows = [found.passage.row for found in rankings.reranked] if stage == "reranked" else getattr(rankings, stage)
        ranks.append(rows.index(question.paragraph) + 1 if question.paragraph in rows else None)
    line: dict[str, Any] = {"stage": stage}
    for depth in DEPTHS:
        line[f"recall@{depth}"] = round(sum(rank is not None and rank <= depth for rank in ranks) / len(ranks), 4)
    line["mrr"] = round(sum(1 / rank for rank in ranks if rank) / len(ranks), 4)
    seconds = sum(rankings.seconds[stage] for _, rankings in results)
    line["ms_per_question"] = round(1000 * seconds / len(results), 3)
    return line
