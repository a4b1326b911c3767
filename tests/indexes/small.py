"""Small indexes, made without a model, to change and to damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexes.checked import BLOCK, CheckedFile, CheckedWriter
from indexes.files import CURRENT
from indexes.live import Live
from indexes.passage_store import PassageStore
from indexes.passages import Chunk, Document
from indexes.postings import Postings, PostingsFile, PostingsWriter
from indexes.segments import EncodedDocument
from indexes.store import IndexSettings, PassageIndex, open_passages, write_index
from indexes.token_vectors import quantise
from retrieval.indexing import build_index
from tests.hash_encoder import HashEncoder

SETTINGS = IndexSettings("hash", 33, 100, True, ("notes", "na\udcffme"))
SEGMENT = [f"segments/000001/{name}" for name in ("arrays", "documents.jsonl", "embeddings.f16", "postings.u4")]
SEGMENT += ["segments/000001/texts.utf8", "segments/000001/tokens.i8"]
FILES = ["generations/000001.json", "generations/000001.roots.json", *SEGMENT]


def no_progress(what: str, done: int, total: int) -> None:
    """Says nothing."""


def document(source: str, text: str) -> Document:
    return Document(source, source, text, hashlib.sha256(text.encode()).hexdigest())


def build(folder: Path) -> Path:
    build_index(folder, SETTINGS, [document("a", "one")], HashEncoder(), no_progress)
    return folder


def encoded(document: Document, chunks: Sequence[Chunk], indexed_at: float | None = None) -> EncodedDocument:
    vectors, tokens = HashEncoder().encode_tokens([chunk.text for chunk in chunks] or [""])
    return EncodedDocument(
        document, chunks, vectors[: len(chunks)], [quantise(one) for one in tokens[: len(chunks)]], indexed_at
    )


def one_chunk(source: str, text: str) -> EncodedDocument:
    return encoded(document(source, text), [Chunk(0, text)])


def passage_store(folder: Path, *documents: tuple[Document, Sequence[Chunk]]) -> PassageStore:
    write_index(folder, SETTINGS, [encoded(*item) for item in documents])
    return open_passages(folder)


def old_index(folder: Path, *roots: str) -> Path:
    """What tells of an index that was made before there were segments."""
    (folder / "000004").mkdir(parents=True)
    data = json.dumps(roots).encode("ascii")
    (folder / "000004" / "roots.json").write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    (folder / "000004" / "manifest.json").write_text("{}")
    (folder / CURRENT).write_text("000004 " + "0" * 64)
    return folder


def checked(path: Path, data: bytes, block_bytes: int = BLOCK, held: bool = False) -> CheckedFile:
    """A file with these bytes, opened to be read in pieces."""
    writer = CheckedWriter(path, block_bytes)
    writer.write(data)
    facts = writer.close()
    return CheckedFile(path, facts).with_blocks(bytes(writer.block_digests), block_bytes, held)


def live(count: int, deleted: Sequence[tuple[int, int]] = (), offset: int = 0) -> Live:
    """A segment of so many documents of one passage each."""
    return Live.without(deleted, np.arange(count + 1), offset)


def postings(*segments: Sequence[str], deleted: Sequence[tuple[int, int]] = ()) -> Postings:
    """Segments with these passages; `deleted` are those of the first one."""
    parts: list[tuple[PostingsFile, Live]] = []
    offset = 0
    for number, texts in enumerate(segments):
        writer = PostingsWriter()
        for text in texts:
            writer.add(text)
        data, arrays = writer.finish()
        file = PostingsFile(lambda begin, end, data=data: data[begin:end], arrays)  # type: ignore[misc]
        parts.append((file, live(len(texts), () if number else deleted, offset)))
        offset += len(texts)
    return Postings(parts)


def everything(index: PassageIndex) -> object:
    """All that an index can give, by source: what it holds, and what it finds."""
    encoder = HashEncoder()
    sources: dict[str, object] = {}
    for source, item in sorted(index.encoded_documents().items()):
        tokens = [one.tolist() for one in item.tokens]
        sources[source] = item.document, list(item.chunks), item.vectors.tolist(), tokens
    found: list[object] = []
    for question in ("one two", "number three stands", "text"):
        (vector,) = encoder.encode_questions([question])
        near, alike = index.vectors.search(vector, 20), index.postings.search(question, 20)
        found.append([[passage.id for passage in index.passages.get(rows)] for rows in (near, alike)])
        rows = index.passages.rows().tolist()
        ids = (passage.id for passage in index.passages.get(rows))
        found.append(sorted(zip(ids, index.postings.scores(question)[rows].tolist(), strict=True)))
    return sources, found, index.passages.facts(), index.settings
