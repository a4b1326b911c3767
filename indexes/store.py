"""A passage index on disk: passages, dense vectors, token vectors and postings, written and opened together."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from indexes.errors import DamagedIndexError, IndexStoreError, SettingError
from indexes.files import (
    CURRENT,
    MANIFEST,
    current_generation,
    generations,
    read_manifest,
    sha256_file,
    writing,
)
from indexes.passages import Chunk, Document, PassageStore, write_passages
from indexes.postings import Postings, build_postings
from indexes.token_vectors import Quantised, TokenVectors, TokenVectorsWriter
from indexes.vectors import VectorIndex, Vectors, build_vector_index

T = TypeVar("T")
PASSAGES, VECTORS, EMBEDDINGS, TOKENS, POSTINGS, ROOTS, EXCLUDED = (
    "passages.sqlite",
    "vectors.faiss",
    "embeddings.npy",
    "tokens.i8",
    "postings",
    "roots.json",
    "excluded.json",
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """What an index was built with: a passage found later must have been encoded by the same encoder.

    roots are the files and folders that it follows, excluded the files below them that were deleted from it.
    """

    encoder: str
    dimension: int
    chunk_chars: int
    token_vectors: bool
    roots: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document ready to be written: its chunks, their vectors (C, D), and per-token vectors for each or none.

    indexed_at is when it was encoded, in seconds since 1970, if that is known.
    """

    document: Document
    chunks: Sequence[Chunk]
    vectors: Vectors
    tokens: Sequence[Quantised] = field(default_factory=list)
    indexed_at: float | None = None


@dataclass(frozen=True, slots=True)
class PassageIndex:
    """An opened index; `layout` says how its vectors are kept, `digest` tells its generation from all others."""

    name: str
    settings: IndexSettings
    layout: str
    digest: str
    passages: PassageStore
    vectors: VectorIndex
    embeddings: npt.NDArray[np.float16]
    tokens: TokenVectors | None
    postings: Postings

    def encoded_documents(self) -> dict[str, EncodedDocument]:
        """Everything that the index holds, by source, so that unchanged documents need not be encoded again."""
        result: dict[str, EncodedDocument] = {}
        times = {facts.source: facts.indexed_at for facts in self.passages.facts()}
        for document, lines in self.passages.documents():
            rows = [row for row, _ in lines]
            tokens = [self.tokens.of(row) for row in rows] if self.tokens else []
            vectors = self.embeddings[rows].astype(np.float32)
            chunks = [chunk for _, chunk in lines]
            result[document.source] = EncodedDocument(document, chunks, vectors, tokens, times[document.source])
        return result


def check_name(name: str, what: str = "an index") -> str:
    """The name, if it can be one. Raises SettingError."""
    if not NAME.fullmatch(name):
        raise SettingError(
            f"{name!r} cannot be the name of {what}; use up to 64 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    return name


def names(home: Path) -> list[str]:
    """The indexes below `home`."""
    found = (path.parent.name for path in home.glob(f"*/{CURRENT}"))
    return sorted(name for name in found if NAME.fullmatch(name))


def write_index(folder: Path, settings: IndexSettings, documents: Sequence[EncodedDocument]) -> str:
    """Write a generation of the index in `folder` and make it current; returns the layout of its vectors."""
    with writing(folder) as draft:
        times = {item.document.source: item.indexed_at for item in documents if item.indexed_at is not None}
        write_passages(draft / PASSAGES, ((item.document, item.chunks) for item in documents), times)
        vectors = np.concatenate([encoded.vectors for encoded in documents])
        np.save(draft / EMBEDDINGS, vectors.astype(np.float16))
        layout = str(build_vector_index(vectors.astype(np.float32), draft / VECTORS))
        build_postings([chunk.text for encoded in documents for chunk in encoded.chunks], draft / POSTINGS)
        if settings.token_vectors:
            writer = TokenVectorsWriter(draft / TOKENS, settings.dimension)
            for encoded in documents:
                for tokens in encoded.tokens:
                    writer.append(tokens)
            writer.close()
        for name, listed in ((ROOTS, settings.roots), (EXCLUDED, settings.excluded)):
            (draft / name).write_bytes(_with_digest(json.dumps(listed).encode("ascii")))
        manifest = {
            "encoder": settings.encoder,
            "dimension": settings.dimension,
            "chunk_chars": settings.chunk_chars,
            "token_vectors": settings.token_vectors,
            "roots": settings.roots,
            "excluded": settings.excluded,
            "layout": layout,
            "documents": len(documents),
            "passages": len(vectors),
        }
        (draft / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    return layout


def _with_digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode("ascii") + b"\n" + data


def known_roots(folder: Path) -> list[str]:
    """The files and folders that an index follows, if that can still be told: a damaged one is rebuilt from them."""
    return _known(folder, ROOTS, "roots")


def known_excluded(folder: Path) -> list[str]:
    """The files that were deleted from an index, if that can still be told."""
    return _known(folder, EXCLUDED, "excluded")


def _known(folder: Path, name: str, key: str) -> list[str]:
    """A list that stands in two files of a generation, each with its own checksum."""
    for generation in reversed(generations(folder)):
        try:
            whole = (generation / name).read_bytes()
            data = whole.partition(b"\n")[2]
            if whole == _with_digest(data):
                return list(json.loads(data))
        except OSError:
            pass
        try:
            current, digest = current_generation(folder)
            if current == generation and sha256_file(current / MANIFEST) == digest:
                return list(json.loads((current / MANIFEST).read_bytes()).get(key, ()))
        except (OSError, IndexStoreError):
            pass
    return []


def open_index(folder: Path) -> PassageIndex:
    """Open the current generation. Raises IndexStoreError, DamagedIndexError: the latter names the file."""
    return _of_current(folder, lambda generation, digest: _open(folder.name, generation, digest))


def open_passages(folder: Path) -> PassageStore:
    """Open only the documents and passages of the current generation, without reading the rest of it.

    Raises as `open_index` does, for the files that it reads.
    """
    return _of_current(folder, _open_passages)


def _of_current(folder: Path, open_: Callable[[Path, str], T]) -> T:
    current = current_generation(folder)
    try:
        return open_(*current)
    except (DamagedIndexError, OSError, RuntimeError, sqlite3.Error):
        replaced = current_generation(folder)  # a writer may have replaced the generation that was being opened
        if replaced == current:
            raise
        return open_(*replaced)


def _open_passages(generation: Path, digest: str) -> PassageStore:
    read_manifest(generation, digest, whole=(PASSAGES,))
    return PassageStore(generation / PASSAGES)


def _open(name: str, generation: Path, digest: str) -> PassageIndex:
    manifest: dict[str, Any] = read_manifest(generation, digest)
    settings = IndexSettings(
        manifest["encoder"],
        manifest["dimension"],
        manifest["chunk_chars"],
        manifest["token_vectors"],
        tuple(manifest["roots"]),
        tuple(manifest.get("excluded", ())),  # older indexes have none
    )
    embeddings = np.load(generation / EMBEDDINGS, mmap_mode="r")
    return PassageIndex(
        name,
        settings,
        manifest["layout"],
        digest,
        PassageStore(generation / PASSAGES),
        VectorIndex(generation / VECTORS, embeddings),
        embeddings,
        TokenVectors(generation / TOKENS, settings.dimension) if settings.token_vectors else None,
        Postings(generation / POSTINGS),
    )
