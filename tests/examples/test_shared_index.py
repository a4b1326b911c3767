"""The example of a shared index: a real Chroma server, filled from the user's index of the built-in corpus."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest
from langchain_core.documents import Document

from app.answering.engine import Engine
from app.answering.sources import _module_of_file, load_finder
from app.setup.settings import paths
from indexes.errors import FinderError, SettingError
from indexes.store import PassageIndex
from retrieval.finder import given
from retrieval.python_docs import PYTHON_DOCS
from tests.app.api.serving import wait_until

ROOT = Path(__file__).parents[2]
FINDER = "examples/shared_index_chroma.py:store"
QUESTIONS = [json.loads(line)["question"] for line in (ROOT / "app/batch/python_questions.jsonl").open()]
QUESTIONS += [json.loads(line)["condensed"] for line in (ROOT / "benchmarks/followups.jsonl").open()]
ROUNDING = 1e-4  # Chroma normalises vectors again


@contextmanager
def chroma(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server of its own process; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder), "--port", str(port)]
    with (folder / "log").open("wb") as log:  # no pipe: once that is full, the server waits for a reader
        process = subprocess.Popen([*command, "--host", "127.0.0.1"], cwd=folder, stdout=log, stderr=log)
    try:
        wait_until(lambda: process.poll() is not None or b"listening" in (folder / "log").read_bytes(), 60)
        assert process.poll() is None, (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait(30)


def started(address: str, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "CHROMA_URL": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that the example's own process has filled."""
    with chroma(tmp_path_factory.mktemp("shared")) as (served, _):
        filling = started(served, "examples/shared_index_chroma.py", PYTHON_DOCS)
        printed, errors = filling.communicate(timeout=300)
        assert printed.endswith(" passages added or replaced, 0 deleted\n"), errors
        yield served


@pytest.fixture(scope="module")
def index(engine: Engine) -> PassageIndex:
    return engine.open(paths().indexes / PYTHON_DOCS)


@pytest.fixture
def example(address: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example's code, which asks the filled server."""
    monkeypatch.setenv("CHROMA_URL", address)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return _module_of_file(ROOT / "examples/shared_index_chroma.py")


@pytest.mark.parametrize(("top_k", "recall"), [(3, 1.0), (10, 0.99)])
def test_the_shared_index_finds_what_exact_search_finds_in_ours(
    engine: Engine, index: PassageIndex, example: ModuleType, top_k: int, recall: float
) -> None:
    shared, near, same = example.store(), 0, 0
    for question in QUESTIONS:
        vector = engine.encoder.encode_questions([question])[0]
        rows = index.vectors.search(vector, top_k)
        ours = index.vectors.stored(rows) @ vector
        theirs = shared.similarity_search_with_score(question, top_k)
        near += sum(1 - distance >= ours[-1] - ROUNDING for _, distance in theirs)
        same += [document.page_content for document, _ in theirs] == [row.text for row in index.passages.get(rows)]
    found = near / (top_k * len(QUESTIONS))
    print(f"{len(QUESTIONS)} questions, top {top_k}: recall {found:.4f}, the same texts in the same order for {same}")
    assert found >= recall


def test_a_shared_passage_says_where_it_stands(index: PassageIndex, example: ModuleType) -> None:
    (found,) = load_finder(str(ROOT / FINDER)).find("What do lambda expressions create?", 1)
    (ours,) = [
        passage for passage in index.passages.get(index.passages.rows().tolist()) if passage.id == found.passage.id
    ]
    assert (found.passage.source, found.passage.title, found.passage.start) == (ours.source, ours.title, ours.start)
    assert (found.passage.text, found.passage.page) == (ours.text, ours.page)
    (held,) = example.store().get_by_ids([ours.id])
    assert held.metadata["end"] == ours.start + len(ours.text)


def test_filling_again_writes_only_what_changed(example: ModuleType) -> None:
    shared = example.store(PYTHON_DOCS)
    (lambdas,) = shared.get_by_ids(["python-docs/lambda#0"])
    gone = Document("no longer there", id="gone#0", metadata={"source": "gone"})
    shared.add_documents([gone, Document("changed meanwhile", id=lambdas.id, metadata=lambdas.metadata)])
    assert example.fill(PYTHON_DOCS) == (1, 1)
    assert example.fill(PYTHON_DOCS) == (0, 0)
    assert shared.get_by_ids([lambdas.id, "gone#0"]) == [lambdas]


def test_two_processes_at_once_answer_from_it_as_from_the_same_passages(
    engine: Engine, address: str, tmp_path: Path
) -> None:
    (tmp_path / "q.jsonl").write_text("".join(json.dumps({"question": text}) + "\n" for text in QUESTIONS[:4]))
    few = ("--finder", FINDER, "--max-new-tokens", "24")
    asking = started(address, "app.py", "ask", QUESTIONS[0], *few, "--json")
    batch = started(address, "app.py", "batch", "-d", f"{tmp_path}/q.jsonl", "-o", f"{tmp_path}/run", *few)
    asked, errors = asking.communicate(timeout=300)
    assert asking.returncode == 0, errors
    _, errors = batch.communicate(timeout=300)
    assert batch.returncode == 0, errors
    rows = [json.loads(line) for line in (tmp_path / "run" / "rows.jsonl").open()]
    answer = json.loads(asked)
    assert (answer["answer"], answer["passages"]) == (rows[0]["answer"], rows[0]["passages"])
    own = Engine(engine.settings.model_copy(update={"max_new_tokens": 24}), home=engine.paths)
    for row in rows:
        passages = given([(passage["id"], passage["text"]) for passage in row["passages"]])
        *_, here = own.ask(row["question"], passages)
        assert (row["answer"], row["error"]) == (here.text, None)


def test_a_server_that_is_not_there_ends_the_command_with_one_sentence() -> None:
    asking = started("http://127.0.0.1:9", "app.py", "ask", "What is a lambda?", "--finder", FINDER)
    printed, errors = asking.communicate(timeout=300)
    assert (asking.returncode, printed) == (2, "")
    assert errors.splitlines()[-1].startswith(f"Error: the finder '{FINDER}' cannot be loaded: ValueError: Could not")
    assert "Traceback" not in errors


def test_a_server_that_dies_between_two_questions_is_named(
    tmp_path: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chroma(tmp_path) as (served, process):
        monkeypatch.setenv("CHROMA_URL", served)
        example.store("python-docs", create=True).add_documents([Document("The lamp is red.", id="lamp")])
        finder = load_finder(str(ROOT / FINDER))
        assert [found.passage.id for found in finder.find("Which colour has the lamp?", 3)] == ["lamp"]
        process.kill()
        process.wait(30)
        with pytest.raises(FinderError, match=r"shared_index_chroma\.py:store' failed: ConnectError: .*refused"):
            finder.find("Which colour has the lamp?", 3)


def test_an_index_that_nobody_shared_is_named(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_INDEX", "nowhere")
    with pytest.raises(SettingError, match=r"Collection \[nowhere.all-MiniLM-L6-v2\] does not exist$"):
        load_finder(str(ROOT / FINDER))


@contextmanager
def asks_for_a_token(behind: str, token: str) -> Iterator[str]:
    """A proxy before a server, as an administrator would set one up."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            if self.headers["Authorization"] != f"Bearer {token}":
                self.send_error(401)
                return
            request = urllib.request.Request(behind + self.path, body, {"Content-Type": "application/json"})
            request.method = self.command
            with urllib.request.urlopen(request) as reply:
                answer = reply.read()
                self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        thread.join(30)
        proxy.server_close()


def test_behind_a_proxy_only_who_has_the_token_finds_passages(
    address: str, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asks_for_a_token(address, "a-long-secret") as guarded:
        monkeypatch.setenv("CHROMA_URL", guarded)
        with pytest.raises(SettingError, match="cannot be loaded"):
            load_finder(str(ROOT / FINDER))
        monkeypatch.setenv("CHROMA_TOKEN", "a-long-secret")
        found = load_finder(str(ROOT / FINDER)).find("What do lambda expressions create?", 1)
    assert found[0].passage.id == "python-docs/lambda#0"
