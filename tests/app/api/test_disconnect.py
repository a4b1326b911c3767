"""A client that goes away frees the model within two forward passes, wherever its request was."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import torch

from app.answering.engine import Engine
from decoding.tree import DraftTree
from tests.app.api.serving import local_application, running, tiny_engine, wait_until

PASS_S = 0.04
MANY = 400


class Passes:
    """Counts a target's forward passes, and makes each take PASS_S."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        forward, prefill = engine.target.forward, engine.target.prefill

        def slow_forward(token: int, tree: DraftTree) -> torch.Tensor:
            self._count()
            return forward(token, tree)

        def slow_prefill(tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
            self._count()
            return prefill(tokens, cached)

        monkeypatch.setattr(engine.target, "forward", slow_forward)
        monkeypatch.setattr(engine.target, "prefill", slow_prefill)

    def _count(self) -> None:
        self.count += 1
        time.sleep(PASS_S)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    engine = tiny_engine(tmp_path_factory.mktemp("slow"), drafter="plain")
    engine.load()
    return engine


@pytest.fixture
def passes(slow: Engine, monkeypatch: pytest.MonkeyPatch) -> Passes:
    return Passes(slow, monkeypatch)


@pytest.fixture
def served(slow: Engine, passes: Passes) -> Iterator[str]:
    with running(local_application(slow)) as address:
        yield address


def send(address: str, path: str, body: dict[str, Any]) -> socket.socket:
    """Send a request and read nothing."""
    where, content = urlsplit(address), json.dumps(body).encode()
    connection = socket.create_connection((where.hostname, where.port), timeout=10)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    connection.sendall(head.encode() + b"\r\n\r\n" + content)
    return connection


def queued(address: str) -> int:
    return int(httpx2.get(f"{address}/healthz").json()["queued"])


REQUESTS = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": MANY}),
    ("/v1/answers", {"question": "what is a lambda?", "max_new_tokens": MANY}),
]


@pytest.mark.parametrize(("path", "body"), REQUESTS)
@pytest.mark.parametrize("stream", [False, True])
def test_no_more_than_two_passes_follow_when_a_client_goes(
    served: str, passes: Passes, path: str, body: dict[str, Any], stream: bool
) -> None:
    connection = send(served, path, body | {"stream": stream})
    wait_until(lambda: passes.count >= 5)
    connection.close()
    counted = passes.count
    wait_until(lambda: queued(served) == 0)
    time.sleep(5 * PASS_S)
    assert passes.count - counted <= 2


def test_a_client_that_goes_while_it_waits_costs_no_pass(served: str, passes: Passes) -> None:
    first = send(served, *REQUESTS[0])
    wait_until(lambda: passes.count >= 1)
    second = send(served, REQUESTS[0][0], REQUESTS[0][1] | {"stream": True})
    wait_until(lambda: queued(served) == 2)
    second.close()
    wait_until(lambda: queued(served) == 1)
    first.close()
    counted = passes.count
    wait_until(lambda: queued(served) == 0)
    assert passes.count - counted <= 2


def test_a_client_that_goes_while_the_page_has_the_model_costs_no_pass(
    served: str, slow: Engine, passes: Passes
) -> None:
    stop = threading.Event()
    page = slow.ask("what?", slow.paths.indexes / "letters", cancelled=stop.is_set)
    next(page)
    counted = passes.count
    connection = send(served, *REQUESTS[0])
    wait_until(lambda: queued(served) == 1)
    connection.close()
    wait_until(lambda: queued(served) == 0)
    assert passes.count == counted
    stop.set()
    assert list(page)[-1].finished == "cancelled"


def test_others_are_answered_while_one_is_being_written(served: str, passes: Passes) -> None:
    connection = send(served, *REQUESTS[0])
    wait_until(lambda: passes.count >= 1)
    start = time.monotonic()
    assert httpx2.get(f"{served}/v1/models").status_code == 200
    assert time.monotonic() - start < 2
    connection.close()


def test_a_reader_slower_than_the_model_gets_the_whole_answer(served: str) -> None:
    body = REQUESTS[1][1] | {"stream": True, "max_new_tokens": 30}
    with httpx2.stream("POST", f"{served}/v1/answers", json=body, timeout=30) as reply:
        pieces = []
        for piece in reply.iter_raw():
            pieces.append(piece)
            time.sleep(0.1)
    events = b"".join(pieces).decode().strip().split("\n\n")
    answer = json.loads(events[-1].splitlines()[1].removeprefix("data: "))
    texts = [json.loads(event.splitlines()[1].removeprefix("data: "))["text"] for event in events[1:-1]]
    assert "".join(texts) == answer["answer"]
    assert answer["stats"]["new_tokens"] == 30


def test_an_answer_over_the_time_limit_is_cut_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tiny_engine(tmp_path_factory.mktemp("timed"), drafter="plain", request_timeout_s=0.5)
    engine.load()
    Passes(engine, monkeypatch)
    with running(local_application(engine)) as address:
        reply = httpx2.post(f"{address}{REQUESTS[0][0]}", json=REQUESTS[0][1], timeout=30).json()
    assert reply["choices"][0]["finish_reason"] == "length"
    assert 0 < reply["usage"]["completion_tokens"] < 100
    assert reply["quotewright"]["finished"] == "cancelled"
    assert reply["quotewright"]["notes"] == ["the answer was ended: it took longer than 0.5 s"]
