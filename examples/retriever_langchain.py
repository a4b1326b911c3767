"""A chain of LangChain's parts: our retriever finds documents, a prompt holds them, our chat model copies from them.

Run: python examples/retriever_langchain.py ["your question"]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs in a checkout

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough

from app.chat_langchain import QuotewrightChat
from app.retriever_langchain import QuotewrightRetriever

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "You answer questions from the given text. Answer in one or two sentences, in words of the text."),
        ("human", "{text}\n\nQuestion: {question}\nAnswer:"),
    ]
)


def chain() -> Runnable[str, AIMessage]:
    """Question -> message. The documents are the chat model's references, so that it says what it copied from which."""
    retriever = QuotewrightRetriever(index="python-docs", k=3)
    chat = QuotewrightChat(max_tokens=80, stop=["\n"])

    def written(found: dict[str, Any]) -> Runnable[Any, AIMessage]:
        documents: list[Document] = found["documents"]
        # small models like the best one last
        best_last = (" ".join(document.page_content.split()) for document in reversed(documents))
        text = "\n\n".join(best_last)
        return PROMPT.partial(text=text) | chat.bind(references=documents)

    return RunnableParallel(documents=retriever, question=RunnablePassthrough()) | RunnableLambda(written)


def main(question: str) -> None:
    """Print the answer, what it copied, and where that stands."""
    answer = chain().invoke(question)
    print(answer.text, "\n\nCopied:")
    sources = {passage["id"]: passage["source"] for passage in answer.response_metadata["passages"]}
    for span in answer.response_metadata["spans"]:
        print(f'  "{answer.text[span["start"] : span["end"]]}" from {sources[span["passage_id"]]}')


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "What does the with statement do?")
