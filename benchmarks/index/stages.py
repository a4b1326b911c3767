"""What is measured of one index, a process each: building, opening, searching.

Bare FAISS is asked beside us, question by question: the same quantised index from the same file, alone, and with its
candidates scored again from the stored vectors in a memory map as one writes it in NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.index.corpus import Corpus
from benchmarks.resident import peak_bytes, read_bytes
from indexes.maintenance import size_bytes
from indexes.neighbours import recall
from indexes.passages import Chunk, Document
from indexes.segments import EMBEDDINGS, VECTORS, EncodedDocument
from indexes.store import IndexSettings, PassageIndex, open_index, write_index
from retrieval.indexing import Progress

TOP_K = 100
PER_DOCUMENT = 100
QUESTION_WORDS = 8
Found = Sequence[int] | npt.NDArray[np.int64]


def build(progress: Progress, folder: Path, made: Corpus, vectors: Path) -> dict[str, Any]:
    """Write the index; seconds, of all threads too, and the most memory that it took."""
    settings = IndexSettings("synthetic", made.dimension, 600, False, ())
    before, began, busy = peak_bytes(), time.perf_counter(), time.process_time()
    done = write_index(folder, settings, _documents(made, vectors, progress))
    return {
        "passages": done.passages,
        "vectors": done.layout,
        "build_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - busy, 2),
        "peak_mb": round(peak_bytes() / 1e6, 1),
        "started_mb": round(before / 1e6, 1),
        "mb_on_disk": round(size_bytes(done) / 1e6, 1),
    }


def _documents(made: Corpus, vectors: Path, progress: Progress) -> Iterator[EncodedDocument]:
    texts = made.texts(progress)
    with vectors.open("rb") as file:
        file.seek(np.load(vectors, mmap_mode="r").offset)
        for first in range(0, made.count, PER_DOCUMENT):
            number = min(PER_DOCUMENT, made.count - first)
            rows = np.fromfile(file, np.float16, number * made.dimension).reshape(number, made.dimension)
            parts = [next(texts) for _ in range(number)]
            starts = np.cumsum([0, *(len(part) + 1 for part in parts)]).tolist()
            chunks = [Chunk(start, part) for start, part in zip(starts, parts, strict=False)]
            name = f"document {first // PER_DOCUMENT}"
            document = Document(name, name, " ".join(parts), name)
            yield EncodedDocument(document, chunks, rows.astype(np.float32))


def open_(progress: Progress, folder: Path) -> dict[str, Any]:
    """Open it, ready to be searched, in a process that has imported everything."""
    read, began = read_bytes(), time.perf_counter()
    open_index(folder)
    seconds = time.perf_counter() - began
    return {"open_s": round(seconds, 3), "open_mb_read": round((read_bytes() - read) / 1e6, 1)}


def search(
    progress: Progress, folder: Path, made: Corpus, asked: npt.NDArray[np.float32], true: npt.NDArray[np.int64],
    probes: Sequence[int], threads: int,
) -> dict[str, Any]:  # fmt: skip
    """Milliseconds per question, ours first on pages that were never read, and recall; `probes` are further nprobes."""
    faiss.omp_set_num_threads(threads)
    index = open_index(folder)
    bare = Bare(folder, index)
    ways: dict[str, Callable[[Any], Found]] = {
        "ours": lambda query: index.vectors.search(query, TOP_K),
        "faiss_alone": lambda query: bare.candidates(query, bare.nprobe),
        "faiss": lambda query: bare.scored(query, bare.nprobe),
    }
    ways |= {f"nprobe_{number}": lambda query, number=number: bare.scored(query, number) for number in probes}  # type: ignore[misc]
    cold = [_timed(lambda query=query: index.vectors.search(query, TOP_K))[0] for query in asked]  # type: ignore[misc]
    for way in ways.values():
        way(asked[0])
    times: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, list[Found]] = {name: [] for name in ways}
    for done, query in enumerate(asked):
        progress("Searching", done, len(asked))
        for name, way in ways.items():
            took, rows = _timed(lambda way=way, query=query: way(query))  # type: ignore[misc]
            times[name].append(took)
            found[name].append(rows)
    progress("Searching", len(asked), len(asked))
    ms = {name: 1000 * float(np.median(taken)) for name, taken in times.items()}
    return {
        "nprobe": bare.nprobe,
        "candidates": bare.rescored * TOP_K,
        "recall": round(recall(found["ours"], true), 4),
        "p50_ms": round(ms["ours"], 3),
        "p95_ms": round(1000 * float(np.quantile(times["ours"], 0.95)), 3),
        "cold_p50_ms": round(1000 * float(np.median(cold)), 3),
        "faiss_p50_ms": round(ms["faiss"], 3),
        "faiss_alone_p50_ms": round(ms["faiss_alone"], 3),
        "overhead": round(ms["ours"] / ms["faiss"] - 1, 3),
        **_lexical(index, made),
        "probes": [
            {
                "nprobe": number,
                "recall": round(recall(found[f"nprobe_{number}"], true), 4),
                "p50_ms": round(ms[f"nprobe_{number}"], 3),
            }
            for number in probes
        ],
    }


def _lexical(index: PassageIndex, made: Corpus) -> dict[str, float]:
    """The lexical search for words of passages, and reading the passages that it finds."""
    draw, times, reading = np.random.default_rng(0), [], []
    for row in draw.integers(made.count, size=100).tolist():
        words = index.passages.get([row])[0].text.split()
        question = " ".join(draw.choice(words, min(QUESTION_WORDS, len(words)), replace=False))
        took, rows = _timed(lambda question=question: index.postings.search(question, TOP_K))  # type: ignore[misc]
        times.append(took)
        reading.append(_timed(lambda rows=rows: index.passages.get(rows))[0])  # type: ignore[misc]
    return {
        "lexical_p50_ms": round(1000 * float(np.median(times)), 3),
        "passages_p50_ms": round(1000 * float(np.median(reading)), 3),
    }


class Bare:
    """FAISS on the files of an index of one segment; an index that is not quantised is searched exactly.

    nprobe (0: all) and rescored are what the index was found to need when it was built.
    """

    def __init__(self, folder: Path, index: PassageIndex) -> None:
        segment = folder / "segments" / index.generation.segments[0].name
        shape = index.generation.passages, index.settings.dimension
        self._stored: Any = np.memmap(segment / EMBEDDINGS, np.float16, "r", shape=shape)
        self.nprobe, self.rescored = 0, 1
        if (segment / VECTORS).exists():
            read: Any = faiss.read_index(str(segment / VECTORS))
            self._index: Any = read
            self.nprobe, self.rescored = read.nprobe, index.parts[0][0].search[0].rescored
        else:
            self._index = faiss.IndexFlatIP(shape[1])
            self._index.add(self._stored.astype(np.float32))

    def candidates(self, query: Any, nprobe: int) -> npt.NDArray[np.int64]:
        """Those that it finds to be scored again."""
        if self.nprobe:
            self._index.nprobe = nprobe
        rows: npt.NDArray[np.int64] = self._index.search(query[None], self.rescored * TOP_K)[1][0]
        return rows[rows >= 0]

    def scored(self, query: Any, nprobe: int) -> npt.NDArray[np.int64]:
        """The best of them by the stored vectors."""
        rows = self.candidates(query, nprobe)
        scores = self._stored[rows].astype(np.float32) @ query
        best: npt.NDArray[np.int64] = rows[np.argsort(-scores)[:TOP_K]]
        return best


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found
