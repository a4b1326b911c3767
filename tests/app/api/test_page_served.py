"""The chat page and the API in one application."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from app.answering.engine import Engine
from app.api.access import make_access
from app.api.application import create_application
from app.api.page import mount_page, page_alone
from tests.app.api.serving import running

KEY = {"Authorization": "Bearer alpha"}


@pytest.fixture(scope="module")
def both(tiny: Engine) -> Iterator[str]:
    application = create_application(tiny, make_access("127.0.0.1", ["alpha"], (), (), pages=True))
    mount_page(application, tiny)
    with running(application) as served:
        yield served


def test_the_page_is_there_without_a_key_and_with_our_looks(both: str) -> None:
    page = httpx2.get(f"{both}/", timeout=60)
    assert page.status_code == 200
    assert "Quotewright" in page.text
    config = httpx2.get(f"{both}/config", timeout=60).json()
    assert "qw-" in config["css"]
    assert (config["analytics_enabled"], config["run_history"]) == (False, False)


def test_the_routes_beside_it_want_their_key(both: str) -> None:
    assert httpx2.get(f"{both}/v1/models").status_code == 401
    assert httpx2.get(f"{both}/v1/models", headers=KEY).status_code == 200
    assert httpx2.get(f"{both}/healthz").json()["status"] == "ok"


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_foreign_web_pages_reach_the_page_no_more_than_the_routes(both: str, headers: dict[str, str]) -> None:
    for path in ("/", "/config", "/gradio_api/info", "/v1/models"):
        assert httpx2.get(f"{both}{path}", headers=headers | KEY).status_code == 403


def test_the_page_alone_has_no_routes(tiny: Engine) -> None:
    with running(page_alone(tiny, make_access("127.0.0.1", (), (), (), pages=True))) as served:
        assert httpx2.get(f"{served}/", timeout=60).status_code == 200
        assert httpx2.get(f"{served}/v1/models").status_code == 404
