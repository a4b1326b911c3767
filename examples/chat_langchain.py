"""A chat model that answers from an index and tells which words it copied from where.

Run: python examples/chat_langchain.py ["your question"]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs in a checkout

from langchain_core.messages import AIMessageChunk

from app.chat_langchain import QuotewrightChat


def main(question: str) -> None:
    """Stream an answer, then print its copied spans and its figures."""
    chat = QuotewrightChat(index="python-docs", max_tokens=80)
    answer = AIMessageChunk(content="")
    for chunk in chat.stream(question):
        print(chunk.content, end="", flush=True)
        answer += chunk
    print("\n\nCopied:")
    for span in answer.response_metadata["spans"]:
        print(f'  "{answer.text[span["start"] : span["end"]]}" from {span["passage_id"]}')
    figures = answer.response_metadata["figures"]
    print(f"{figures['tokens_per_s']} tokens/s, accept length {figures['accept_length']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "What is a lambda?")
