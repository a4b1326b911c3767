"""LangChain's vector stores and retrievers as finders: real stores, and retrievers written here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from indexes.errors import FinderError
from retrieval.conversation import Turn
from retrieval.finder import Found
from retrieval.finder_langchain import LangchainFinder, finder_over, found_of
from tests.hash_encoder import HashEncoder

KETTLE = Document("The kettle holds two litres.", id="kettle", metadata={"source": "a.pdf", "start_index": 40})
LAMP = Document("The lamp is red.", id="lamp", metadata={"source": "b.pdf"})


class Words(Embeddings):
    """A text is the mean of its words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = HashEncoder().encode_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Kept(BaseRetriever):
    """Finds what it was given, whatever is asked, and keeps what that was."""

    documents: list[Document]
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        self.asked.append(query)
        return self.documents


class OnlyAsynchronous(BaseRetriever):
    """Finds in whose loop and thread it was asked."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        raise NotImplementedError

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        await asyncio.sleep(0.01)
        return [Document(f"{id(asyncio.get_running_loop())}")]


@pytest.fixture
def store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(Words())
    store.add_documents([KETTLE, LAMP])
    return store


def found(*documents: Document) -> list[Found]:
    return found_of([(document, None) for document in documents])


# Searching


def test_a_vector_store_finds_the_nearest_with_their_scores(store: InMemoryVectorStore) -> None:
    best, second = LangchainFinder(store).find("the kettle holds two litres.", 2)
    assert (best.passage.id, best.passage.source, best.passage.start) == ("kettle", "a.pdf", 40)
    assert best.score == pytest.approx(1.0, abs=1e-5)
    assert second.score < best.score
    assert best.relevance is None


def test_no_more_than_top_k_are_found(store: InMemoryVectorStore) -> None:
    assert len(LangchainFinder(store).find("lamp", 1)) == 1
    assert len(LangchainFinder(Kept(documents=[KETTLE, LAMP])).find("lamp", 1)) == 1


def test_top_k_is_told_to_a_retriever_that_takes_it(store: InMemoryVectorStore) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 1})
    assert len(LangchainFinder(retriever).find("lamp", 2)) == 2


def test_an_empty_store_finds_nothing() -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    assert LangchainFinder(store).find("lamp", 3) == []
    assert LangchainFinder(store).find("lamp", 3, [Turn("kettle?", "yes")]) == []


def test_a_chain_that_makes_documents_is_asked_too() -> None:
    finder = finder_over(RunnableLambda(lambda question: [Document(f"about {question}")]))
    assert finder is not None
    assert [item.passage.text for item in finder.find("lamps", 3)] == ["about lamps"]


def test_a_follow_up_is_searched_alone_and_with_what_it_goes_back_to() -> None:
    retriever = Kept(documents=[KETTLE, LAMP])
    before = "What does the kettle hold?"
    passages = LangchainFinder(retriever).find("And the lamp?", 2, [Turn("A spoon?", "x"), Turn(before, "2 l")])
    assert retriever.asked == ["And the lamp?", f"{before} And the lamp?", f"{before} 2 l And the lamp?"]
    assert [item.passage.id for item in passages] == ["kettle", "lamp"]
    assert [item.score for item in passages] == [pytest.approx(3 / 61), pytest.approx(3 / 62)]


def test_a_change_of_topic_is_searched_alone() -> None:
    retriever = Kept(documents=[KETTLE])
    question = "Which bulb does the red lamp need?"
    LangchainFinder(retriever).find(question, 1, [Turn("What does the kettle hold?", "2 l")])
    assert retriever.asked == [question]


@pytest.mark.parametrize("made", ["text", [1], None, [KETTLE, "text"]])
def test_what_are_no_documents_is_refused(made: Any) -> None:
    with pytest.raises(FinderError, match=r"RunnableLambda returned .*expected is a list of LangChain Documents"):
        LangchainFinder(RunnableLambda(lambda _: made)).find("lamp", 1)


def test_other_things_are_no_source() -> None:
    assert finder_over("a store") is None


# Asynchronous sources


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_an_asynchronous_retriever_is_asked_in_one_loop_all_the_time() -> None:
    finder = LangchainFinder(OnlyAsynchronous())
    assert finder.find("x", 1)[0].passage.text == finder.find("y", 1)[0].passage.text


def test_an_asynchronous_retriever_is_asked_in_the_loop_that_is_given(loop: asyncio.AbstractEventLoop) -> None:
    assert LangchainFinder(OnlyAsynchronous(), loop).find("x", 1)[0].passage.text == str(id(loop))


async def test_a_synchronous_search_works_where_a_loop_is_running() -> None:
    assert len(LangchainFinder(OnlyAsynchronous()).find("x", 1)) == 1


def test_a_vector_store_is_searched_in_a_loop_too(store: InMemoryVectorStore, loop: asyncio.AbstractEventLoop) -> None:
    assert LangchainFinder(store, loop).find("lamp", 2) == LangchainFinder(store).find("lamp", 2)


def test_a_loop_that_has_ended_is_an_error_and_no_hang() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(FinderError, match="its event loop has ended"):
        LangchainFinder(OnlyAsynchronous(), loop).find("x", 1)


# Documents as passages


def test_ids_are_the_documents_own_or_follow_from_source_and_text() -> None:
    texts = [Document("b", metadata={"source": "s"}), Document("c", metadata={"id": 7}), Document("a", id="x")]
    first, again = found(*texts), found(*reversed(texts))
    # the SHA-256 of "b" begins with 3e23e8160039
    assert [item.passage.id for item in first] == ["s#3e23e8160039", "7", "x"]
    assert [item.passage.id for item in again] == ["x", "7", "s#3e23e8160039"]


def test_ids_differ_where_texts_differ() -> None:
    one, two = found(Document("a", id="x"), Document("b", id="x"))
    assert (one.passage.id, two.passage.id) == ("x", "x#3e23e8160039")


def test_blank_and_repeated_documents_are_left_out() -> None:
    passages = found(Document(" \n"), KETTLE, Document(KETTLE.page_content, id="other"), LAMP)
    assert [item.passage.id for item in passages] == ["kettle", "lamp"]
    assert [item.passage.row for item in passages] == [0, 1]


@pytest.mark.parametrize(
    ("metadata", "page"),
    [
        ({}, None),
        ({"page": 3}, 3),
        ({"page": 0, "total_pages": 9}, 1),
        ({"page": 4, "page_label": "5", "total_pages": 9}, 5),
        ({"page": 4, "page_label": "iv", "total_pages": 9}, 5),
        ({"page_number": 2.0}, 2),
        ({"page": "7"}, 7),
        ({"page": True}, None),
        ({"page": float("nan")}, None),
        ({"page": -1}, None),
        ({"page": [1]}, None),
        ({"page": 1.5}, None),
    ],
)
def test_pages_are_counted_from_1(metadata: dict[str, Any], page: int | None) -> None:
    assert found(Document("a", metadata=metadata))[0].passage.page == page


def test_odd_metadata_is_told_as_text_or_left_out() -> None:
    (item,) = found(Document("a", metadata={"source": None, "file_path": ["x"], "title": 3, "start_index": "far"}))
    assert (item.passage.source, item.passage.title, item.passage.start) == ("['x']", "3", 0)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.9, 0.5], [0.9, 0.5]),
        ([0.5, 0.9], [-0.5, -0.9]),  # distances
        ([0.9, None], [1, 0.5]),
        ([float("nan"), 0.5], [1, 0.5]),
        ([None, None], [1, 0.5]),
    ],
)
def test_better_passages_have_greater_scores(scores: list[float | None], expected: list[float]) -> None:
    passages = found_of(zip([KETTLE, LAMP], scores, strict=True))
    assert [item.score for item in passages] == expected


def test_a_retriever_s_scores_are_read_from_the_metadata() -> None:
    documents = [Document(text, metadata={"relevance_score": score}) for text, score in (("a", 0.7), ("b", 0.2))]
    assert [item.score for item in LangchainFinder(Kept(documents=documents)).find("x", 2)] == [0.7, 0.2]
