"""An index that several people share: a Chroma server, filled from an index of ours and asked by everybody.

Install: pip install chromadb==1.5.9 langchain-chroma==1.1.0
Serve:   chroma run --path shared-index --host 127.0.0.1 --port 8001
Fill:    python examples/shared_index_chroma.py work       (again after each `app.py index --name work`)
Ask:     QUOTEWRIGHT_INDEX=work python app.py ask "When does it end?" --finder examples/shared_index_chroma.py:store

CHROMA_URL says where the server is, if not there. It lets in whoever reaches it (since version 1.0 it checks no keys):
for other machines, put a proxy before it that asks for a token; CHROMA_TOKEN is sent as the bearer token. Any other
vector store of LangChain's is filled and asked like this one.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs in a checkout

from chromadb.config import Settings
from langchain_chroma import Chroma

from app.answering.shared_engines import shared_engine
from app.embeddings_langchain import QuotewrightEmbeddings
from app.retriever_langchain import index_documents

AT_ONCE = 200


def store(index: str = "", create: bool = False) -> Chroma:
    """The shared passages of an index, searched as widely as makes the nearest ones certain in practice.

    The encoder is part of the collection's name: with another one nobody finds it, and nobody compares vectors of two.
    """
    ours = shared_engine({})
    where = urlsplit(os.environ.get("CHROMA_URL", "http://127.0.0.1:8001"))
    token = os.environ.get("CHROMA_TOKEN")
    return Chroma(
        f"{index or ours.settings.index}.{Path(ours.profile.encoder).name}",
        QuotewrightEmbeddings(index=index or None),  # filling it encodes nothing anew
        host=where.hostname,
        port=where.port or (443 if where.scheme == "https" else 80),
        ssl=where.scheme == "https",
        headers={"Authorization": f"Bearer {token}"} if token else None,
        client_settings=Settings(anonymized_telemetry=False),
        collection_configuration={"hnsw": {"space": "cosine", "ef_search": 200}} if create else None,
        create_collection_if_not_exists=create,
    )


def fill(index: str) -> tuple[int, int]:
    """Make the shared passages those of the index: how many were added or replaced, and how many deleted."""
    shared, documents, added = store(index, create=True), index_documents(index), 0
    stale = set(shared.get(include=[])["ids"])
    while some := list(itertools.islice(documents, AT_ONCE)):
        held = {document.id: document for document in shared.get_by_ids([str(document.id) for document in some])}
        new = [document for document in some if held.get(document.id) != document]
        if new:
            shared.add_documents(new)
        added += len(new)
        stale.difference_update(str(document.id) for document in some)
    for begin in range(0, len(stale), AT_ONCE):
        shared.delete(sorted(stale)[begin : begin + AT_ONCE])
    return added, len(stale)


def main(index: str) -> None:
    """Fill the shared index, and say what that changed."""
    added, deleted = fill(index)
    print(f"{index}: {added} passages added or replaced, {deleted} deleted")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "python-docs")
