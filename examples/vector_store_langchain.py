"""Any vector store of LangChain's in place of our index; this one holds our embeddings in memory.

Run: python examples/vector_store_langchain.py ["your question"]
Or from the command line: python app.py ask "How big is the kettle?" --finder examples/vector_store_langchain.py:store
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs in a checkout

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from app.chat_langchain import QuotewrightChat
from app.embeddings_langchain import QuotewrightEmbeddings

NOTES = {
    "kettle.txt": "The kettle holds two litres of water. It was made in Leeds in 1951.",
    "lamp.txt": "The lamp in the hall is red and needs a bulb of forty watts.",
    "garden.txt": "The garden is watered every second evening from May to September.",
}


def store() -> InMemoryVectorStore:
    """The notes, ready to be searched. A Qdrant, Milvus or pgvector cluster would be connected to here."""
    notes = InMemoryVectorStore(QuotewrightEmbeddings())
    notes.add_documents([Document(text, id=name, metadata={"source": name}) for name, text in NOTES.items()])
    return notes


def main(question: str) -> None:
    """Print an answer from the store, and which note each copied run of words stands in."""
    answer = QuotewrightChat(retriever=store(), k=2, max_tokens=60).invoke(question)
    print(answer.text, "\n\nCopied:")
    for span in answer.response_metadata["spans"]:
        print(f'  "{answer.text[span["start"] : span["end"]]}" from {span["passage_id"]}')


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "How much water does the kettle hold?")
