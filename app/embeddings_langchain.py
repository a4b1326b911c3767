"""`QuotewrightEmbeddings`: our encoder as LangChain's embeddings."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict, Field

from app.answering.shared_engines import shared_engine
from app.messages_langchain import storable


class QuotewrightEmbeddings(BaseModel, Embeddings):
    """Unit vectors of questions and of passages. The encoder is loaded when it is first needed. Raises ModelError."""

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Any] = Field(default_factory=dict)
    """Any settings of Quotewright by name, such as {"encoder": "BAAI/bge-m3"}; equal ones share the loaded models."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each passage."""
        if not texts:
            return []
        encoder = shared_engine(self.settings).encoder
        vectors: list[list[float]] = encoder.encode_passages([storable(text) for text in texts]).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = shared_engine(self.settings).encoder.encode_questions([storable(text)])[0].tolist()
        return vector
