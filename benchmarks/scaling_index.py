"""What the corpus costs an index, and what references cost the structures that are built for each question.

The corpus is the built-in one; where more is asked for, it comes again with the words of every line in another order.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from decoding.drafter import Drafter, DraftRequest, Reference
from indexes.passages import Document
from indexes.store import IndexSettings
from retrieval.chunking import chunk_document
from retrieval.encoders import Encoder, Vectors
from retrieval.indexing import Progress, build_index
from retrieval.python_docs import python_docs

T = TypeVar("T")

REFERENCE_TOKENS, QUESTION_TOKENS = 150, 12  # of a passage and of a question, about


class TimedEncoder:
    """An encoder, and the seconds spent in it."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.id = encoder.id
        self.dimension = encoder.dimension
        self.seconds = 0.0

    def encode_questions(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""
        return self._timed(lambda: self._encoder.encode_questions(texts))

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""
        return self._timed(lambda: self._encoder.encode_passages(texts))

    def encode_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        """Dense vectors (B, D), and for each text its per-token vectors (T, D)."""
        return self._timed(lambda: self._encoder.encode_tokens(texts))

    def _timed(self, call: Callable[[], T]) -> T:
        began = time.perf_counter()
        found = call()
        self.seconds += time.perf_counter() - began
        return found


def corpus(chunks: int, chunk_chars: int) -> list[Document]:
    """Documents of so many chunks; one or two more, where a text that was cut falls apart otherwise."""
    found: list[Document] = []
    for document in _without_end():
        cut = chunk_document(document, chunk_chars)[:chunks]
        text = document.text[: cut[-1].start + len(cut[-1].text)]
        found.append(Document(document.source, document.title, text, document.sha256))
        chunks -= len(chunk_document(found[-1], chunk_chars))
        if chunks <= 0:
            break
    return found


def _without_end() -> Iterator[Document]:
    documents = python_docs()
    yield from documents
    copy = 1
    while True:
        draw = random.Random(copy)
        for document in documents:
            lines = [line.split(" ") for line in document.text.split("\n")]
            for line in lines:
                draw.shuffle(line)
            text = "\n".join(" ".join(line) for line in lines)
            yield Document(f"{document.source}/{copy}", document.title, text, f"{copy}/{document.sha256}")
        copy += 1


def index_lines(
    sizes: Sequence[int], settings: IndexSettings, encoder: Encoder, progress: Progress
) -> list[dict[str, Any]]:
    """Build an index of every size in a temporary folder: seconds, those of the encoder, and bytes on disk.

    cpu_s is what all threads computed: a build is too long to repeat, and a busy machine makes the seconds longer.
    """
    encoder.encode_tokens(["The first text of all makes it slow."])
    lines = []
    for done, size in enumerate(sizes):
        progress("Building indexes", done, len(sizes))
        documents, timed = corpus(size, settings.chunk_chars), TimedEncoder(encoder)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "scaling"
            began, busy = time.perf_counter(), time.process_time()
            report = build_index(folder, settings, documents, timed, progress)
            seconds, cpu = time.perf_counter() - began, time.process_time() - busy
            on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        lines.append(
            {
                "chunks": report.passages,
                "documents": report.documents,
                "characters": sum(len(one.text) for one in documents),
                "build_s": round(seconds, 4),
                "encode_s": round(timed.seconds, 4),
                "cpu_s": round(cpu, 4),
                "other_s": round(seconds - timed.seconds, 4),
                "mb_on_disk": round(on_disk / 10**6, 4),
                "vectors": report.layout,
            }
        )
    progress("Building indexes", len(sizes), len(sizes))
    return lines


def drafting_lines(
    sizes: Sequence[int],
    tokens: Sequence[int],
    drafters: dict[str, Drafter],
    rounds: int,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Fastest milliseconds in which each drafter takes in references of so many tokens; `tokens` repeat if need be."""
    fastest = {size: dict.fromkeys(drafters, float("inf")) for size in sizes}
    requests = {size: _request(size, tokens) for size in sizes}
    for drafter in drafters.values():
        drafter.start(requests[sizes[0]])  # compiled code is loaded
    for done in range(rounds):
        progress("Building drafting structures", done, rounds)
        for size in sizes:
            for name, drafter in drafters.items():
                began = time.perf_counter()
                drafter.start(requests[size])
                fastest[size][name] = min(fastest[size][name], time.perf_counter() - began)
    progress("Building drafting structures", rounds, rounds)
    return [
        {"reference_tokens": size} | {f"ms_{name}": round(1000 * seconds, 4) for name, seconds in times.items()}
        for size, times in fastest.items()
    ]


def _request(size: int, tokens: Sequence[int]) -> DraftRequest:
    text = tuple(tokens[at % len(tokens)] for at in range(size))
    parts = [text[at : at + REFERENCE_TOKENS] for at in range(0, size, REFERENCE_TOKENS)]
    question = Reference(text[:QUESTION_TOKENS], "question")
    return DraftRequest(text, (*map(Reference, parts), question))
