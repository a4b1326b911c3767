"""The OpenAPI document holds for whatever is sent: schemathesis makes requests of it, and checks every reply."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from app.answering.engine import Engine
from tests.app.api.serving import local_application

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    negative_data_rejection,
]  # fmt: skip
EXAMPLES = 60  # per operation
HEADERS = {"Host": "127.0.0.1"}


OPERATIONS = [
    ("POST", "/v1/chat/completions"), ("POST", "/v1/answers"), ("POST", "/v1/embeddings"), ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"), ("GET", "/v1/indexes"), ("GET", "/healthz"),
]  # fmt: skip


@pytest.fixture(scope="module")
def document(tiny: Engine) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", local_application(tiny), headers=HEADERS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_reply_is_as_documented_and_no_request_is_a_server_error(
    document: Any, method: str, path: str, mode: GenerationMode
) -> None:
    operation = document[path][method]
    if mode is GenerationMode.NEGATIVE and not operation.body and not operation.path_parameters:
        return  # there is nothing that could be wrong

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def check(case: Case[Any]) -> None:
        if isinstance(case.body, dict):
            case.body.pop("max_new_tokens", None)  # thousands of tokens would only take long
        case.call_and_validate(checks=CHECKS, headers=HEADERS)

    check()


def test_the_document_is_complete(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    documented = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    assert documented == set(OPERATIONS)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            assert "422" not in operation["responses"], path
            assert operation["responses"]["400"]["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/ErrorReply"
            }
            assert bool(operation.get("security")) == path.startswith("/v1/"), path
