"""Who does the work of indexing: reads files, chunks documents, encodes passages. This process, or others for it.

Says nothing of indexes, or of which files and documents are worth the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from indexes.errors import DocumentError
from indexes.passages import Chunk, Document
from indexes.token_vectors import Quantised, quantise
from retrieval.chunking import chunk_document
from retrieval.documents import read_document

if TYPE_CHECKING:
    from retrieval.encoders import Encoder, Vectors

Source = tuple[Path, str]  # a file, and what the index calls it
Read = Callable[[Sequence[Source]], Iterator[Document | DocumentError]]
Encoded = tuple["Vectors", list[Quantised]]  # vectors (B, D), and per-token vectors (T, D) of each text or none


class Workers(Protocol):
    """Do all of something, and give the results in the order of what was given, as they become ready."""

    def read(self, files: Sequence[Source]) -> Iterator[Document | DocumentError]:
        """What each file holds, or why it cannot be read."""

    def chunk(self, documents: Sequence[Document], chunk_chars: int) -> Iterator[list[Chunk]]:
        """The chunks of each document."""

    def encode(self, batches: Sequence[Sequence[str]], token_vectors: bool) -> Iterator[Encoded]:
        """The vectors of each batch of texts, which are encoded together: that decides their last bits."""


@dataclass(frozen=True, slots=True)
class ThisProcess:
    """One after the other, here."""

    encoder: Encoder

    def read(self, files: Sequence[Source]) -> Iterator[Document | DocumentError]:
        """What each file holds, or why it cannot be read."""
        return read_here(files)

    def chunk(self, documents: Sequence[Document], chunk_chars: int) -> Iterator[list[Chunk]]:
        """The chunks of each document."""
        return (chunk_document(document, chunk_chars) for document in documents)

    def encode(self, batches: Sequence[Sequence[str]], token_vectors: bool) -> Iterator[Encoded]:
        """The vectors of each batch of texts."""
        return (encode_batch(self.encoder, batch, token_vectors) for batch in batches)


def read_here(files: Sequence[Source]) -> Iterator[Document | DocumentError]:
    """What each file holds, or why it cannot be read, read in this process."""
    return map(read_or_tell, files)


def read_or_tell(file: Source) -> Document | DocumentError:
    """What a file holds, or why it cannot be read."""
    try:
        return read_document(*file)
    except DocumentError as error:
        return error


def encode_batch(encoder: Encoder, texts: Sequence[str], token_vectors: bool) -> Encoded:
    """The vectors of texts, encoded together."""
    if not token_vectors:
        return encoder.encode_passages(texts), []
    dense, per_token = encoder.encode_tokens(texts)
    return dense, list(map(quantise, per_token))
