"""One engine of tiny models, and one running server, for all tests of the API that change nothing of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from openai import OpenAI

from app.answering.engine import Engine
from tests.app.api.serving import local_application, running, tiny_engine


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return tiny_engine(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="session")
def client(tiny: Engine) -> Iterator[TestClient]:
    with TestClient(local_application(tiny), base_url="http://127.0.0.1", raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def address(tiny: Engine) -> Iterator[str]:
    with running(local_application(tiny)) as served:
        yield served


@pytest.fixture(scope="session")
def official(address: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as opened:
        yield opened
