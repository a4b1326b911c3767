"""`QuotewrightEmbeddings`: our encoder as LangChain's embeddings."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict, Field

from app.answering.shared_engines import shared_engine
from app.answering.sources import index_folder
from app.messages_langchain import storable

if TYPE_CHECKING:
    from indexes.store import PassageIndex


class QuotewrightEmbeddings(BaseModel, Embeddings):
    """Unit vectors of questions and of passages. The encoder is loaded when it is first needed.

    Raises ModelError, and for `index` IndexStoreError.
    """

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Any] = Field(default_factory=dict)
    """Any settings of Quotewright by name, such as {"encoder": "BAAI/bge-m3"}; equal ones share the loaded models."""
    index: str | Path | None = None
    """An index's name or folder: its passages are not encoded again but have the vectors that it holds."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each passage."""
        texts = [storable(text) for text in texts]
        held = {} if self.index is None else self._rows
        vectors = {text: self._index.vectors.stored([held[key]])[0] for text in texts if (key := _key(text)) in held}
        missing = list(dict.fromkeys(text for text in texts if text not in vectors))
        if missing:
            encoded = shared_engine(self.settings).encoder.encode_passages(missing)
            vectors |= dict(zip(missing, encoded, strict=True))
        return [vectors[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = shared_engine(self.settings).encoder.encode_questions([storable(text)])[0].tolist()
        return vector

    @functools.cached_property
    def _index(self) -> PassageIndex:
        engine = shared_engine(self.settings)
        return engine.open(index_folder(engine, self.index or engine.settings.index))

    @functools.cached_property
    def _rows(self) -> dict[bytes, int]:
        """A row in which a passage's text stands, for every text of the index."""
        passages = self._index.passages
        return dict(zip(map(_key, map(storable, passages.texts())), passages.rows().tolist(), strict=True))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()[:16]  # so that not all texts are in memory
