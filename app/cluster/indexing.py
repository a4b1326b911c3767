"""An index built on Ray: tasks read files and chunk documents, a pool of actors encodes, each with its own encoder.

What is encoded together is decided where the index is written, as it is without Ray, and vectors come back in order, so
the index has the same contents. Only the machine where the command runs writes it, at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.answering.engine import Engine
from app.answering.verify_costs import files_digest
from app.cluster.engines import Like, share_for
from app.cluster.machines import Share
from app.cluster.session import RayChoice
from app.cluster.spreading import Work, spread
from indexes.errors import DocumentError
from indexes.passages import Chunk, Document
from retrieval.chunking import chunk_document
from retrieval.workers import Encoded, Source, encode_batch, read_or_tell


@dataclass(frozen=True, slots=True)
class RayWorkers:
    """The workers of an index that is made with an engine's encoder, within a session of Ray."""

    engine: Engine
    choice: RayChoice
    say: Callable[[str], None]

    def read(self, files: Sequence[Source]) -> Iterator[Document | DocumentError]:
        """What each file holds, or why it cannot be read."""
        return self._in_tasks(read_or_tell, files)

    def chunk(self, documents: Sequence[Document], chunk_chars: int) -> Iterator[list[Chunk]]:
        """The chunks of each document."""
        return self._in_tasks(functools.partial(chunk_document, max_chars=chunk_chars), documents)

    def encode(self, batches: Sequence[Sequence[str]], token_vectors: bool) -> Iterator[Encoded]:
        """The vectors of each batch of texts."""
        make = functools.partial(_encoding, Like.of(self.engine), _facts(self.engine), token_vectors)
        return (result for _, result in spread(make, batches, self._share, self.say))

    def _in_tasks(self, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        return (result for _, result in spread(lambda: work, items, None, self.say))

    def _share(self) -> Share:
        return share_for(self.engine, self.choice, [self.engine.encoder_folder])


def _facts(engine: Engine) -> dict[str, Any]:
    return {"device": engine.device, "encoder's files": files_digest(engine.encoder_folder)}


def _encoding(like: Like, expected: dict[str, Any], token_vectors: bool) -> Work:
    encoder = like.engine(_facts, expected).encoder
    return lambda texts: encode_batch(encoder, texts, token_vectors)
