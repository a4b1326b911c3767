"""LangChain's own suites for integrations, and spans, on the laptop profile's real models and the built-in corpus."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import (
    ChatModelIntegrationTests,
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
)
from langchain_tests.unit_tests import ChatModelUnitTests, EmbeddingsUnitTests

from app.answering.loading import silent
from app.chat_langchain import QuotewrightChat
from app.embeddings_langchain import QuotewrightEmbeddings
from app.retriever_langchain import QuotewrightRetriever
from app.setup.models import resolve_model
from app.setup.profiles import PROFILES
from app.setup.settings import paths


class TestChatUnit(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return QuotewrightChat

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, object], dict[str, object]]:
        return {"QUOTEWRIGHT_MODEL": "somebody/model"}, {}, {"model": "somebody/model"}


class TestChatIntegration(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return QuotewrightChat

    @property
    def chat_model_params(self) -> dict[str, object]:
        return {"max_tokens": 24}

    @property
    def model_override_value(self) -> str:
        """The same model by the folder that holds it."""
        return str(resolve_model(PROFILES["laptop"].model, paths().models, silent))


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return QuotewrightRetriever

    @property
    def retriever_query_example(self) -> str:
        return "What is a lambda?"


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return QuotewrightEmbeddings


class TestEmbeddingsIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return QuotewrightEmbeddings


def test_what_so_small_models_cannot_do_is_not_claimed() -> None:
    suite = TestChatUnit()
    assert {suite.has_tool_calling, suite.has_structured_output, suite.supports_image_inputs} == {False}


def test_every_span_holds_the_same_words_in_answer_and_reference() -> None:
    text = "The kettle holds two litres of water. It was made in Leeds in 1951 by a company of three brothers."
    chat = QuotewrightChat(references=[("kettle", text)], max_tokens=40)
    message = chat.invoke(f"{text}\n\nQuestion: How much water does the kettle hold?\nAnswer:")
    spans = message.response_metadata["spans"]
    assert spans
    for span in spans:
        assert span["passage_id"] == "kettle"
        copied = message.text[span["start"] : span["end"]]
        assert copied.split() == text[span["passage_start"] : span["passage_end"]].split()
