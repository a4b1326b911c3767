"""`serve-vllm` with the real vLLM: `make test-vllm`. It takes minutes and an environment that CI does not have, so
elsewhere it is skipped, and says so."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.setup.profiles import SMOLLM2

ROOT = Path(__file__).parents[3]
PYTHON = os.environ.get("QUOTEWRIGHT_TEST_VLLM", "")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="QUOTEWRIGHT_TEST_VLLM names no interpreter that has vLLM: make test-vllm"),
    pytest.mark.timeout(1200),
]
SENTENCE = "the cat sat on the mat and looked at the dog"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("vllm") / "log.txt").open("w+")
    limits = ["--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "4", "--dtype", "float32"]
    process = subprocess.Popen(
        [sys.executable, "app.py", "serve-vllm", SMOLLM2, "--port", str(port), "--vllm-python", PYTHON, "--", *limits],
        cwd=ROOT,
        env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_PLUGINS": ""},
        stdout=log,
        stderr=log,
        text=True,
    )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        deadline = time.monotonic() + 900
        while True:
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, Path(log.name).read_text()[-3000:]
                assert time.monotonic() < deadline, Path(log.name).read_text()[-3000:]
                time.sleep(2)
        yield url, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def say(url: str, number: int) -> str:
    question = {"role": "user", "content": f"Repeat this sentence {number} times: {SENTENCE}."}
    body: dict[str, Any] = {"model": SMOLLM2, "temperature": 0, "max_tokens": 60, "messages": [question]}
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        words: str = json.load(answer)["choices"][0]["message"]["content"]
    return words


def test_answers_are_the_same_alone_and_together(server: tuple[str, subprocess.Popen[str]]) -> None:
    url, _ = server
    alone = [say(url, number) for number in (2, 3)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda number: say(url, number), (2, 3, 2, 3))) == alone * 2


def test_a_question_is_asked_through_it(server: tuple[str, subprocess.Popen[str]]) -> None:
    asked = ["ask", "What is a lambda expression?", "--json", "--engine", "openai", "--base-url", server[0]]
    done = subprocess.run(
        [sys.executable, "app.py", *asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "lambda" in json.loads(done.stdout)["answer"].lower()


def test_it_ends_when_told_to(server: tuple[str, subprocess.Popen[str]]) -> None:
    url, process = server
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{url}/models", timeout=5)
