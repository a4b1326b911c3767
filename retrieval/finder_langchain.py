"""A LangChain vector store or retriever as a `Finder`: a Qdrant, Milvus or pgvector cluster in place of our index.

Documents become passages: their id, source, title, page and start come from where LangChain's loaders and splitters
write them. Knows nothing of what the store searches by, and judges no relevance.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import hashlib
import inspect
import math
import threading
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from indexes.errors import FinderError
from indexes.passages import Passage
from retrieval.conversation import Turn
from retrieval.finder import Found
from retrieval.fusion import fuse

SCORES = ("relevance_score", "score", "_score")  # where retrievers and rerankers write it, higher is better
SOURCES = ("source", "file_path", "url", "title")
STARTS = ("start_index", "start")
CHECK_S = 1.0  # whether the loop that a search runs in is still there

Scored = list[tuple[Document, float | None]]


@dataclass(frozen=True, slots=True)
class LangchainFinder:
    """Finds passages with a vector store, or anything that makes documents of a question.

    In `loop` searches run by the asynchronous methods; without one by the synchronous ones, or where a source has none,
    by the asynchronous ones in a loop of ours. Raises FinderError for what are no documents, and whatever the source
    raises.
    """

    source: VectorStore | Runnable[str, list[Document]]
    loop: asyncio.AbstractEventLoop | None = None

    def find(self, question: str, top_k: int, turns: Sequence[Turn] = ()) -> list[Found]:
        """At most `top_k` passages, best first. A follow-up is also searched with what it goes back to, like ours."""
        rankings = [found_of(self._search(text, top_k)) for text in _queries(question, turns)]
        if len(rankings) == 1:
            return rankings[0][:top_k]
        known = {found.passage.id: found for ranking in rankings for found in ranking}
        rows = {name: row for row, name in enumerate(known)}
        fused = fuse([[rows[found.passage.id] for found in ranking] for ranking in rankings], top_k)
        every = list(known.values())
        return [Found(every[row].passage, score) for row, score in fused]

    def _search(self, text: str, top_k: int) -> Scored:
        if self.loop is not None:
            return _result(_searched(self.source, text, top_k), self.loop)
        try:
            return _search(self.source, text, top_k)
        except NotImplementedError:  # it has only asynchronous methods
            return _result(_searched(self.source, text, top_k), _own_loop())


def _queries(question: str, turns: Sequence[Turn]) -> Sequence[str]:
    if not turns:
        return [question]
    from retrieval.follow_ups import in_context  # its list of words takes two seconds to import

    return in_context(question, turns).queries


def finder_over(source: object, loop: asyncio.AbstractEventLoop | None = None) -> LangchainFinder | None:
    """A finder that asks this source of LangChain's, in `loop` if there is one; None if it is another thing."""
    return LangchainFinder(source, loop) if isinstance(source, (VectorStore, Runnable)) else None


def _search(source: VectorStore | Runnable[str, list[Document]], text: str, top_k: int) -> Scored:
    if not isinstance(source, VectorStore):
        return scored_documents(source.invoke(text, **_count(source, "_get_relevant_documents", top_k)), source)
    try:
        return list(source.similarity_search_with_score(text, k=top_k))
    except NotImplementedError:  # not every store tells scores
        return scored_documents(source.similarity_search(text, k=top_k), source)


async def _searched(source: VectorStore | Runnable[str, list[Document]], text: str, top_k: int) -> Scored:
    if not isinstance(source, VectorStore):
        documents = await source.ainvoke(text, **_count(source, "_aget_relevant_documents", top_k))
        return scored_documents(documents, source)
    try:
        return list(await source.asimilarity_search_with_score(text, k=top_k))
    except NotImplementedError:
        return scored_documents(await source.asimilarity_search(text, k=top_k), source)


def _count(source: Runnable[str, list[Document]], method: str, top_k: int) -> dict[str, Any]:
    """The argument that says how many documents are wanted, if this method of a retriever takes one."""
    if not isinstance(source, BaseRetriever):
        return {}
    taken = inspect.signature(getattr(source, method)).parameters
    return {"k": top_k} if "k" in taken or isinstance(source, VectorStoreRetriever) else {}


def scored_documents(documents: Any, source: object) -> Scored:
    """Documents with the scores that stand in their metadata, if all have one of the same name. Raises FinderError."""
    if not isinstance(documents, list) or not all(isinstance(item, Document) for item in documents):
        what = f"a list with {documents!r:.100}" if isinstance(documents, list) else f"a {type(documents).__name__}"
        raise FinderError(f"{type(source).__name__} returned {what}; expected is a list of LangChain Documents")
    for name in SCORES:
        scores = [item.metadata.get(name) for item in documents]
        if documents and all(_number(score) for score in scores):
            return list(zip(documents, scores, strict=True))
    return [(item, None) for item in documents]


def _number(value: Any) -> bool:
    try:
        return not isinstance(value, (bool, str)) and math.isfinite(value)
    except TypeError:
        return False


# Documents as passages


def found_of(scored: Iterable[tuple[Document, float | None]]) -> list[Found]:
    """Documents, best first, as passages; blank and repeated ones are left out.

    Better ones have greater scores: those that grow down the ranking are distances and turn negative; where one is
    missing, all tell the rank.
    """
    kept: dict[str, tuple[Document, float | None]] = {}
    texts: set[str] = set()
    for document, score in scored:
        text = document.page_content
        if text.strip() and text not in texts:
            texts.add(text)
            name = _id(document)
            kept[name if name not in kept else f"{name}#{_digest(text)}"] = document, score
    scores = _descending([score for _, score in kept.values()])
    return [
        Found(_passage(row, name, document), score)
        for row, ((name, (document, _)), score) in enumerate(zip(kept.items(), scores, strict=True))
    ]


def _descending(scores: Sequence[float | None]) -> list[float]:
    known = [float(score) for score in scores if score is not None and _number(score)]
    if len(known) < len(scores):
        return [1 / rank for rank in range(1, len(scores) + 1)]
    return [-score for score in known] if known and known[0] < known[-1] else known


def _id(document: Document) -> str:
    """The document's own id, or one that the same text of the same source always has."""
    own = document.id or document.metadata.get("id")
    return str(own) if own else f"{_source(document)}#{_digest(document.page_content)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _source(document: Document) -> str:
    named = (document.metadata.get(name) for name in SOURCES)
    return next((str(name) for name in named if name), document.id or "document")


def _passage(row: int, name: str, document: Document) -> Passage:
    metadata, source = document.metadata, _source(document)
    start = next((whole for key in STARTS if (whole := _whole(metadata.get(key))) is not None), 0)
    title = str(metadata.get("title") or source)
    return Passage(row, name, source, title, start, document.page_content, _page(metadata))


def _page(metadata: dict[str, Any]) -> int | None:
    """The page counted from 1; LangChain's PDF loaders, which also tell the total, write `page` counted from 0."""
    for name in ("page_number", "page_label"):
        if (page := _whole(metadata.get(name))) is not None:
            return page
    page = _whole(metadata.get("page"))
    return page + 1 if page is not None and "total_pages" in metadata else page


def _whole(value: Any) -> int | None:
    """A whole number from 0 on, however it is written."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None
    return int(value) if _number(value) and value >= 0 and value == int(value) else None


# Asynchronous sources


def _result(search: Coroutine[Any, Any, Scored], loop: asyncio.AbstractEventLoop) -> Scored:
    """What a search in another thread's loop finds. Raises FinderError if the loop ends before."""
    try:
        future = asyncio.run_coroutine_threadsafe(search, loop)
    except RuntimeError as error:  # the loop is closed
        search.close()
        raise FinderError("the search was given up: its event loop has ended") from error
    while not concurrent.futures.wait([future], CHECK_S).done:
        if loop.is_closed():
            raise FinderError("the search was given up: its event loop has ended")
    return future.result()


@functools.cache
def _own_loop() -> asyncio.AbstractEventLoop:
    """One loop for all searches, since clients of databases belong to the loop they were first used in."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="langchain-searches", daemon=True).start()
    return loop
