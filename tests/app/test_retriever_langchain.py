"""QuotewrightRetriever and QuotewrightEmbeddings over the built-in corpus, with the laptop profile's encoder."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from app.answering.engine import Engine
from app.answering.shared_engines import shared_engine
from app.embeddings_langchain import QuotewrightEmbeddings
from app.retriever_langchain import QuotewrightRetriever, index_documents
from app.setup.settings import paths
from indexes.errors import IndexStoreError, SettingError
from retrieval.python_docs import PYTHON_DOCS, python_docs

QUESTION = "What is a lambda?"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return shared_engine({})


def test_documents_are_the_passages_with_where_they_stand(engine: Engine) -> None:
    retriever = QuotewrightRetriever(k=4)
    documents = retriever.invoke(QUESTION)
    found = engine.find(QUESTION, paths().indexes / PYTHON_DOCS, 4)
    assert [document.id for document in documents] == [item.passage.id for item in found]
    assert [document.metadata["score"] for document in documents] == [item.score for item in found]
    texts = {document.source: document.text for document in python_docs()}
    for document in documents:
        metadata = document.metadata
        assert metadata["id"] == document.id
        assert texts[metadata["source"]][metadata["start"] : metadata["end"]] == document.page_content
        assert (metadata["title"], metadata["page"]) == (metadata["source"].split("/")[1], None)


def test_without_k_as_many_are_found_as_the_model_reads(engine: Engine) -> None:
    assert len(QuotewrightRetriever().invoke(QUESTION)) == engine.profile.top_k == 3


async def test_a_coroutine_may_choose_k_too() -> None:
    assert len(await QuotewrightRetriever().ainvoke(QUESTION, k=1)) == 1


def test_an_index_is_chosen_by_its_name_or_its_folder() -> None:
    by_name, by_folder = (QuotewrightRetriever(index=index) for index in (PYTHON_DOCS, paths().indexes / PYTHON_DOCS))
    assert by_name.invoke(QUESTION) == by_folder.invoke(QUESTION)


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_that_cannot_be_is_refused(k: int) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        QuotewrightRetriever(k=k)
    with pytest.raises(SettingError, match=f"k is {k}; it must be at least 1"):
        QuotewrightRetriever().invoke(QUESTION, k=k)


def test_what_cannot_be_asked_is_refused_by_name() -> None:
    with pytest.raises(IndexStoreError, match="there is no index named 'none'"):
        QuotewrightRetriever(index="none").invoke(QUESTION)
    with pytest.raises(SettingError, match="cannot be the name of an index"):
        QuotewrightRetriever(index="..").invoke(QUESTION)
    with pytest.raises(SettingError, match="the question is empty"):
        QuotewrightRetriever().invoke(" ")
    with pytest.raises(ValidationError, match="indx"):
        QuotewrightRetriever(indx="a")  # type: ignore[call-arg]


def test_embeddings_are_the_encoder_s_unit_vectors(engine: Engine) -> None:
    embeddings = QuotewrightEmbeddings()
    vectors = embeddings.embed_documents(["a lambda", "a kettle"])
    assert np.array_equal(np.array(vectors, np.float32), engine.encoder.encode_passages(["a lambda", "a kettle"]))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
    assert np.array_equal(np.array(embeddings.embed_query("x"), np.float32), engine.encoder.encode_questions(["x"])[0])


def test_the_passages_of_an_index_have_the_vectors_that_it_holds(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = engine.open(paths().indexes / PYTHON_DOCS)
    rows = index.passages.rows()[::100].tolist()
    texts = [passage.text for passage in index.passages.get(rows)]
    (fresh,) = engine.encoder.encode_passages(["a kettle"])
    encoded: list[str] = []

    def encode(texts: list[str]) -> list[object]:
        encoded.extend(texts)
        return [fresh] * len(texts)

    monkeypatch.setattr(engine.encoder, "encode_passages", encode)
    vectors = QuotewrightEmbeddings(index=PYTHON_DOCS).embed_documents([*texts, "a kettle", texts[0]])
    held = [*index.vectors.stored(rows), fresh, vectors[0]]
    assert np.allclose(vectors, held, rtol=0, atol=1e-3)  # of one text that stands twice either vector may be told
    assert encoded == ["a kettle"]


def test_every_passage_of_an_index_is_a_document_with_where_it_stands(engine: Engine) -> None:
    passages = engine.open(paths().indexes / PYTHON_DOCS).passages
    documents = list(index_documents())
    assert sorted(str(document.id) for document in documents) == sorted(
        passage.id for passage in passages.get(passages.rows().tolist())
    )
    (found,) = QuotewrightRetriever(k=1).invoke(QUESTION)
    (held,) = (document for document in documents if document.id == found.id)
    assert held.page_content == found.page_content
    where = {name: value for name, value in found.metadata.items() if name not in ("score", "relevance", "page")}
    assert {name: value for name, value in held.metadata.items() if name != "heading"} == where
    assert None not in held.metadata.values()


def test_no_texts_have_no_vectors_and_odd_ones_have_one() -> None:
    embeddings = QuotewrightEmbeddings()
    assert embeddings.embed_documents([]) == []
    assert embeddings.embed_query("a\ud800") == embeddings.embed_query("a?")
    assert len(embeddings.embed_query("")) == 384
