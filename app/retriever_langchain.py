"""`QuotewrightRetriever`: the passages of an index as LangChain's documents; and all of them, for a shared store."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field

from app.answering.shared_engines import shared_engine
from app.answering.sources import index_folder
from indexes.errors import SettingError
from indexes.passages import Passage, headings_at
from retrieval.finder import Found


class QuotewrightRetriever(BaseRetriever):
    """Dense and lexical search, fused and reranked. Nothing is loaded before the first question.

    Raises SettingError, IndexStoreError and ModelError.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    index: str | Path | None = None
    """An index's name or folder; None: the one in the settings, which is the built-in corpus."""
    k: int | None = Field(default=None, ge=1)
    """How many passages; None: as many as the profile's model reads. A call may choose: invoke(question, k=1)."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Any settings of Quotewright by name; equal ones share the loaded models."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if k is not None and k < 1:
            raise SettingError(f"k is {k}; it must be at least 1")
        engine = shared_engine(self.settings)
        folder = index_folder(engine, engine.settings.index if self.index is None else self.index)
        return [document_of(found) for found in engine.find(query, folder, self.k if k is None else k)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        sync = functools.partial(self._get_relevant_documents, run_manager=run_manager.get_sync(), k=k)
        return await run_in_executor(None, sync, query)


def document_of(found: Found) -> Document:
    """A passage with where it stands; `page`, where there is one, is counted from 1.

    relevance is the probability that it is about the question, None where nobody judged it.
    """
    judged = {"score": found.score, "relevance": found.relevance}
    return Document(found.passage.text, id=found.passage.id, metadata=_place(found.passage) | judged)


def index_documents(index: str | Path | None = None, settings: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Every passage of an index, for `add_documents` of any vector store; `index` is chosen as the retriever's is.

    What is None is left out, which not every store takes; `heading` is the innermost one, where there is one. An id
    stays for as long as its document does not change; then others may have it. Raises as the retriever does.
    """
    engine = shared_engine(settings or {})
    passages = engine.open(index_folder(engine, engine.settings.index if index is None else index)).passages
    for document, chunks in passages.documents():
        for passage in passages.get(row for row, _ in chunks):
            place = {name: value for name, value in _place(passage).items() if value is not None}
            above = headings_at(document.headings, passage.start)
            metadata = place | {"heading": above[-1].title} if above else place
            yield Document(passage.text, id=passage.id, metadata=metadata)


def _place(passage: Passage) -> dict[str, Any]:
    return {
        "id": passage.id,
        "source": passage.source,
        "title": passage.title,
        "page": passage.page,
        "start": passage.start,
        "end": passage.start + len(passage.text),
    }
