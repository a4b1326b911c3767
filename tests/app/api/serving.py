"""What tests of the API share: an engine of tiny models, and the application on a real port, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from app.answering.engine import Engine
from app.api.access import make_access
from app.api.application import create_application
from app.api.server import listening_socket
from app.documents.indexing import index_files
from app.setup.settings import Paths, load_settings
from tests.app.tiny_models import write_bge_m3, write_llama

INDEX = "letters"
TEXT = "the lambda is a function. a function is the answer."


def tiny_engine(folder: Path, **settings: object) -> Engine:
    """An engine over tiny models, written to `folder` where they are not there yet, with an index of one passage."""
    model, encoder = folder / "tiny-llama", folder / "tiny-bge"
    if not model.exists():
        write_llama(model)
        write_bge_m3(encoder)
        (folder / "letters.txt").write_text(TEXT)
    chosen = {"max_new_tokens": 12, "top_k": 2, "stop_repeats": False, "min_span_words": 1, "index": INDEX, **settings}
    loaded = load_settings(
        profile="gpu", device="cpu", reranker="none", model=str(model), encoder=str(encoder), **chosen
    )  # fmt: skip
    engine = Engine(loaded, home=Paths(folder / "data", folder / "cache"))
    if not (engine.paths.indexes / INDEX).exists():
        index_files(engine, engine.paths.indexes / INDEX, [folder / "letters.txt"])
    return engine


def local_application(engine: Engine, *keys: str) -> FastAPI:
    """The application as it is on 127.0.0.1."""
    return create_application(engine, make_access("127.0.0.1", keys, (), ()))


@contextmanager
def running(application: FastAPI) -> Iterator[str]:
    """Serve the application on a free port; yields its address."""
    listening = listening_socket("127.0.0.1", 0)
    config = uvicorn.Config(application, http="h11", loop="asyncio", log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


def wait_until(true: object, seconds: float = 10.0) -> None:
    """Wait until a function says yes."""
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.005)
