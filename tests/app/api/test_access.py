"""Who is let in: keys, hosts, origins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.answering.answers import Answer
from app.answering.engine import Engine
from app.api.access import make_access
from app.api.application import create_application
from app.api.reach import is_loopback
from tests.app.api.serving import INDEX

LOCAL = "http://127.0.0.1:8000"
ASKED = {"question": "what is a lambda?", "index": INDEX}


def opened(
    engine: Engine, host: str, keys: tuple[str, ...] = (), hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()
) -> TestClient:
    return TestClient(create_application(engine, make_access(host, keys, hosts, origins)), base_url=LOCAL)


@pytest.fixture
def keyed(tiny: Engine) -> Iterator[TestClient]:
    with opened(tiny, "127.0.0.1", ("alpha", "bêta")) as client:
        yield client


def noted_people(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """For whom each answer is written from now on."""
    people: list[str | None] = []
    ask = engine.ask

    def noted(*values: Any) -> Iterator[Answer]:
        people.append(values[5])
        return ask(*values)

    monkeypatch.setattr(engine, "ask", noted)
    return people


# Keys


@pytest.mark.parametrize(
    "header", [None, "", "alpha", "Bearer", "Bearer alph", "Bearer alphaa", "Basic alpha", b"Bearer \xff"]
)
def test_without_a_known_key_nothing_is_answered(keyed: TestClient, header: str | bytes | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    reply = keyed.post("/v1/answers", json=ASKED, headers=headers)  # type: ignore[arg-type]
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/indexes", "/v1/models/x", "/v1/nothing", "/nothing", "//v1/models"]
)
def test_every_path_but_two_needs_a_key(keyed: TestClient, path: str) -> None:
    assert keyed.get(path).status_code == 401
    assert keyed.get("/healthz").status_code == keyed.get("/openapi.json").status_code == 200


@pytest.mark.parametrize("header", [b"Bearer alpha", b"bearer  alpha", "Bearer bêta".encode()])
def test_each_key_is_let_in(keyed: TestClient, header: bytes) -> None:
    assert keyed.get("/v1/models", headers={b"Authorization": header}).status_code == 200


def test_a_key_is_asked_for_before_the_body_is_looked_at(keyed: TestClient) -> None:
    assert keyed.post("/v1/answers", content=b"x" * 5_000_000).status_code == 401


def test_each_key_and_each_user_of_it_is_a_person_of_its_own(
    tiny: Engine, keyed: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = noted_people(tiny, monkeypatch)
    for key, user in (("alpha", None), ("bêta", None), ("alpha", "ann"), ("alpha", None)):
        headers = {"Authorization": f"Bearer {key}".encode()}
        assert keyed.post("/v1/answers", json=ASKED | {"user": user}, headers=headers).status_code == 200  # type: ignore[arg-type]
    first, second, third, fourth = people
    assert first == fourth
    assert len({first, second, third}) == 3
    assert all(person and person.startswith("key:") and "alpha" not in person for person in people)


def test_without_keys_only_a_named_user_has_answers_kept(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    people = noted_people(tiny, monkeypatch)
    with opened(tiny, "127.0.0.1") as client:
        client.post("/v1/answers", json=ASKED)
        client.post("/v1/answers", json=ASKED | {"user": "ann"})
    assert people == [None, "open/ann"]


# Hosts and origins


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
def test_on_this_machine_a_foreign_host_is_not_answered(client: TestClient, host: str) -> None:
    reply = client.get("/healthz", headers={"Host": host})
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:8000"])
def test_on_this_machine_its_own_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:3000", "http://[", "file://"])
def test_other_web_pages_are_not_answered(client: TestClient, origin: str) -> None:
    reply = client.post("/v1/answers", json=ASKED, headers={"Host": "127.0.0.1:8000", "Origin": origin})
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers


def test_the_server_s_own_page_is_answered(client: TestClient) -> None:
    headers = {"Host": "localhost:8000", "Origin": "http://localhost:8000"}
    assert client.get("/v1/models", headers=headers).status_code == 200


def test_a_page_named_in_the_settings_may_ask_from_elsewhere(tiny: Engine) -> None:
    with opened(tiny, "127.0.0.1", ("alpha",), origins=("https://app.example",)) as client:
        headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        preflight = client.options("/v1/answers", headers=headers)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "https://app.example")
        reply = client.get("/v1/models", headers={"Origin": "https://app.example", "Authorization": "Bearer alpha"})
        assert reply.headers["access-control-allow-origin"] == "https://app.example"


def test_a_host_named_in_the_settings_is_answered_and_its_page_too(tiny: Engine) -> None:
    with opened(tiny, "127.0.0.1", hosts=("Quotes.example",)) as client:
        headers = {"Host": "quotes.example", "Origin": "https://quotes.example"}
        assert client.get("/v1/models", headers=headers).status_code == 200
        assert client.get("/v1/models", headers={"Host": "other.example"}).status_code == 403


def test_beyond_this_machine_every_host_is_answered_unless_some_are_named(tiny: Engine) -> None:
    with opened(tiny, "0.0.0.0", ("alpha",)) as client:
        assert client.get("/healthz", headers={"Host": "anything.example"}).status_code == 200
    with opened(tiny, "0.0.0.0", ("alpha",), hosts=("quotes.example",)) as client:
        assert client.get("/healthz", headers={"Host": "anything.example"}).status_code == 403


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("192.168.0.1", False), ("example.org", False)],
)  # fmt: skip
def test_only_loopback_addresses_are_this_machine_s(host: str, local: bool) -> None:
    assert is_loopback(host) is local
