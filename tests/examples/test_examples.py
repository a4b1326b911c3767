"""The examples as real processes, with the laptop profile's models and the user's index of the built-in corpus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KETTLE = "The kettle holds two litres of water."


def run(*command: str) -> str:
    """What a program prints."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("chat_langchain.py", ["lambda", "\n\nCopied:\n  ", " from python-docs/lambda#", "accept length"]),
        ("retriever_langchain.py", ["with statement", "Copied:\n  ", " from python-docs/with"]),
        ("vector_store_langchain.py", [KETTLE, f'Copied:\n  "{KETTLE}" from kettle.txt']),
    ],
)
def test_an_example_answers_and_tells_what_it_copied(example: str, words: list[str]) -> None:
    printed = run(f"examples/{example}")
    assert [word for word in words if word not in printed] == []


def test_the_command_line_asks_an_example_s_vector_store() -> None:
    finder = "examples/vector_store_langchain.py:store"
    answer = json.loads(run("app.py", "ask", "How much water does the kettle hold?", "--finder", finder, "--json"))
    assert answer["answer"] == KETTLE
    assert answer["passages"][0]["id"] == answer["spans"][0]["passage_id"] == "kettle.txt"


def test_a_batch_asks_it_too(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("question,answer\nHow much water does the kettle hold?,two litres\n")
    finder = "examples/vector_store_langchain.py:store"
    run("app.py", "batch", "--dataset", f"{tmp_path}/questions.csv", "--out", f"{tmp_path}/out", "--finder", finder)
    row = json.loads((tmp_path / "out" / "rows.jsonl").read_text())
    assert (row["answer"], row["passages"][0]["id"]) == (KETTLE, "kettle.txt")


def test_every_example_is_tried_here() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {
        "chat_langchain.py",
        "retriever_langchain.py",
        "shared_index_chroma.py",  # in test_shared_index.py
        "vector_store_langchain.py",
    }
