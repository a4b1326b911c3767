"""`app.py serve` as a real process with the laptop profile's real models; and another `app.py` that asks it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from app.commands.cli import cli
from app.setup.settings import load_settings
from indexes.errors import QuotewrightError
from tests.app.api.serving import wait_until

ROOT = Path(__file__).parents[3]
KEY = "a-long-secret-key"
QUESTION = "What is a lambda expression?"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**settings: str) -> dict[str, str]:
    return os.environ | {"HF_HUB_OFFLINE": "1", "COLUMNS": "200", **settings}


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "app.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(**settings), capture_output=True, text=True, timeout=300
    )  # fmt: skip


@contextmanager
def server(*arguments: str, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server; yields its process and its address."""
    port = free_port()
    command = [sys.executable, "app.py", "serve", "--port", str(port), *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(**settings), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        assert any("Quotewright is on" in line for line in lines), "the server did not start"
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server(QUOTEWRIGHT_API_KEYS=f"other, {KEY}") as (_, served):
        yield served


def test_another_process_has_its_answer_written_by_the_server_in_the_same_words(address: str) -> None:
    remote = ["--engine", "openai", "--base-url", f"{address}/v1"]
    here = run("ask", QUESTION, "--json")
    there = run("ask", QUESTION, "--json", *remote, QUOTEWRIGHT_API_KEY=KEY)
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    expected, answer = json.loads(here.stdout), json.loads(there.stdout)
    assert expected["spans"]
    for name in ("answer", "spans", "passages", "finished", "notes"):
        assert answer[name] == expected[name]
    assert answer["stats"]["drafter"] == "remote"
    assert "135M" not in there.stderr


def test_the_official_client_streams_an_answer_of_the_real_model(address: str) -> None:
    with OpenAI(base_url=f"{address}/v1", api_key=KEY) as client:
        asked: Any = [{"role": "user", "content": "Name three colours."}]
        whole = client.chat.completions.create(model="quotewright", messages=asked, max_tokens=24)
        chunks = client.chat.completions.create(model="quotewright", messages=asked, max_tokens=24, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert text == whole.choices[0].message.content != ""
        assert len(client.embeddings.create(model="quotewright", input="a").data[0].embedding) == 384


@pytest.mark.parametrize(("number", "loaded"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
def test_a_signal_ends_the_server_cleanly_while_it_loads_or_writes(number: signal.Signals, loaded: bool) -> None:
    body = {"messages": [{"role": "user", "content": "Write a very long story."}], "max_tokens": 3000, "stream": True}
    with server() as (process, served):
        if loaded:
            httpx2.post(f"{served}/v1/chat/completions", json=body | {"max_tokens": 1}, timeout=200)
        received: list[str] = []

        def ask() -> None:
            with httpx2.stream("POST", f"{served}/v1/chat/completions", json=body, timeout=200) as reply:
                received.extend(reply.iter_lines())

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: httpx2.get(f"{served}/healthz").json()["queued"] == 1)
        if loaded:
            wait_until(lambda: len(received) > 3, 60)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        asking.join(30)
    assert process.returncode in (0, -number)
    assert "Traceback" not in said
    assert "the server stops" in "".join(received)


# Refusals, in this process


def refused(*arguments: str) -> str:
    """What the command says when it refuses."""
    with pytest.raises(QuotewrightError) as caught:
        cli(["serve", *arguments], standalone_mode=False)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], ["0.0.0.0 can be reached from other machines: set keys", "or say --open"]),
        (["--host", "::"], [":: can be reached from other machines"]),
        (["--host", "203.0.113.7", "--open"], ["cannot serve on 203.0.113.7", "choose another port"]),
        (["--host", "no such name", "--open"], ["cannot serve on no such name"]),
        (["--engine", "openai"], ["base_url is ''", "--base-url http"]),
        (["--engine", "oracle"], ["engine = 'oracle'", "'local' or 'openai'"]),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused_with_what_to_do(arguments: list[str], words: list[str]) -> None:
    said = refused(*arguments)
    assert [word for word in words if word not in said] == []


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot serve on 127.0.0.1:{port}" in refused("--port", str(port))


def test_the_page_is_not_served_to_other_machines_unless_somebody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_API_KEYS", KEY)
    assert "the page asks for no key" in refused("--host", "0.0.0.0", "--page")


def test_keys_between_commas_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_API_KEYS", f" one ,, {KEY},")
    assert [key.get_secret_value() for key in load_settings().api_keys] == ["one", KEY]
    assert KEY not in repr(load_settings())


def test_keys_are_never_shown_in_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "settings.toml").write_text(f'api_keys = [["{KEY}"]]\napi_key = ["{KEY}"]\n')
    monkeypatch.setenv("QUOTEWRIGHT_HOME", str(tmp_path))
    said = refused()
    assert ("api_keys" in said, "api_key = ***" in said, KEY in said) == (True, True, False)
