"""What tests of spans share: tracing passages p0, p1 and so on, best-ranked first."""

from __future__ import annotations

from app.answering.spans import Span, Tracer


def trace(answer: str, *texts: str, min_words: int = 3) -> list[Span]:
    return Tracer([(f"p{rank}", text) for rank, text in enumerate(texts)], min_words).spans(answer)


def quoted(answer: str, *texts: str, min_words: int = 3) -> list[tuple[str, str, str]]:
    """Each span as (words of the answer, passage, words of the passage)."""
    return [
        (
            answer[span.start : span.end],
            span.passage_id,
            texts[int(span.passage_id[1:])][span.passage_start : span.passage_end],
        )
        for span in trace(answer, *texts, min_words=min_words)
    ]
