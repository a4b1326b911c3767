"""/v1/answers, /v1/embeddings and the listings."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from openai import BadRequestError, OpenAI

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from decoding.sampling import Sampling
from retrieval.conversation import Turn
from retrieval.finder import given
from tests.app.api.serving import INDEX, TEXT

QUESTION = "what is a lambda?"
TIMED = {  # times, and what an adaptive number of nodes makes of them
    "retrieval_s", "time_to_first_token_s", "decode_s", "total_s", "tokens_per_s", "forward_passes", "draft_nodes",
    "accept_length",
}  # fmt: skip


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    stats = {name: value for name, value in answer["stats"].items() if name not in TIMED}
    return answer | {"stats": stats}


def events(body: str) -> list[tuple[str, Any]]:
    """The (name, content) of server-sent events."""
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in body.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def test_an_answer_from_an_index_is_the_engine_s(client: TestClient, tiny: Engine) -> None:
    options = {"temperature": 1.2, "sample_top_k": 30, "seed": 3, "max_new_tokens": 9, "top_k": 1, "drafter": "plain"}
    reply = client.post("/v1/answers", json={"question": QUESTION, "index": INDEX, **options}).json()
    chosen = AnswerOptions("plain", None, 9, 1, Sampling(1.2, top_k=30, seed=3))
    *_, expected = tiny.ask(QUESTION, tiny.paths.indexes / INDEX, options=chosen)
    assert timeless(reply) == timeless(expected.to_json())
    assert [passage["text"] for passage in reply["passages"]] == [TEXT]


def test_without_an_index_the_server_s_own_is_asked_with_the_turns_before(client: TestClient, tiny: Engine) -> None:
    turns = [{"question": "what is a function?", "answer": "the answer."}]
    reply = client.post("/v1/answers", json={"question": QUESTION, "turns": turns}).json()
    *_, expected = tiny.ask(QUESTION, tiny.paths.indexes / INDEX, [Turn("what is a function?", "the answer.")])
    assert timeless(reply) == timeless(expected.to_json())


def test_references_take_the_place_of_an_index(client: TestClient, tiny: Engine) -> None:
    references = [{"text": "a lambda."}, {"id": "b", "text": "a function."}]
    reply = client.post("/v1/answers", json={"question": QUESTION, "references": references}).json()
    *_, expected = tiny.ask(QUESTION, given([("1", "a lambda."), ("b", "a function.")]))
    assert timeless(reply) == timeless(expected.to_json())


def test_a_stream_tells_the_passages_then_what_is_added_then_all(client: TestClient) -> None:
    whole = client.post("/v1/answers", json={"question": QUESTION}).json()
    reply = client.post("/v1/answers", json={"question": QUESTION, "stream": True})
    (first, shown), *middle, (last, answer) = events(reply.text)
    assert (first, last, {name for name, _ in middle}) == ("passages", "answer", {"text"})
    assert shown == {"question": QUESTION, "passages": whole["passages"]}
    assert "".join(text["text"] for _, text in middle) == whole["answer"]
    assert timeless(answer) == timeless(whole)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"question": " "}, 400, "the question is empty"),
        ({"question": QUESTION, "index": "none"}, 404, "there is no index named 'none'"),
        ({"question": QUESTION, "index": "../../etc"}, 400, "cannot be the name of an index"),
        ({"question": QUESTION, "index": "", "references": []}, 400, "send one of them"),
        ({"question": QUESTION, "drafter": "crystal"}, 400, "unknown drafter 'crystal'"),
        ({"question": QUESTION, "temperature": 1e9}, 400, "temperature"),
        ({"question": QUESTION, "references": [{"text": "a"}, {"id": "1", "text": "b"}]}, 400, "'1' stands for"),
        ({"question": QUESTION, "references": [{"id": "message-0", "text": "a"}]}, 400, "'message-0'"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_answered_is_refused_with_the_engine_s_words(
    client: TestClient, body: dict[str, Any], status: int, words: str, stream: bool
) -> None:
    reply = client.post("/v1/answers", json=body | {"stream": stream})
    assert reply.status_code == status
    assert words in reply.json()["error"]["message"]


def test_a_damaged_index_is_told_with_its_remedy(client: TestClient, tiny: Engine) -> None:
    folder = tiny.paths.indexes / "torn"
    folder.mkdir()
    (folder / "CURRENT").write_text("nonsense")
    reply = client.post("/v1/answers", json={"question": QUESTION, "index": "torn"})
    assert reply.status_code in (404, 409)
    assert "python app.py index" in reply.json()["error"]["message"]


# Embeddings


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_are_the_encoder_s_and_the_client_reads_both_formats(
    official: OpenAI, tiny: Engine, encoding: Any
) -> None:
    texts = ["a lambda", "the answer is a function."]
    reply = official.embeddings.create(model="tiny-bge", input=texts, encoding_format=encoding)
    values: list[Any] = [one.embedding for one in reply.data]
    vectors = [np.frombuffer(base64.b64decode(one), "<f4") if encoding == "base64" else one for one in values]
    np.testing.assert_allclose(np.array(vectors), tiny.encoder.encode_passages(texts), atol=1e-6)
    assert [one.index for one in reply.data] == [0, 1]
    tokens = sum(map(len, tiny.encoder.encode_tokens(texts)[1]))
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (tokens, tokens)


def test_the_client_s_own_default_works_with_one_text(official: OpenAI, tiny: Engine) -> None:
    reply = official.embeddings.create(model="quotewright", input="a question", extra_body={"input_type": "query"})
    np.testing.assert_allclose(
        np.array(reply.data[0].embedding), tiny.encoder.encode_questions(["a question"])[0], atol=1e-6
    )


def test_many_texts_keep_their_order(official: OpenAI, tiny: Engine) -> None:
    texts = [f"{'a' * (number % 7)} {number}" for number in range(40)]
    reply = official.embeddings.create(model="quotewright", input=texts)
    np.testing.assert_allclose(
        np.array([one.embedding for one in reply.data]), tiny.encoder.encode_passages(texts), atol=1e-5
    )


@pytest.mark.parametrize(
    "fields",
    [{"input": []}, {"input": [""]}, {"input": [1, 2]}, {"input": "a", "dimensions": 7}, {"input": ["a"] * 2049}],
)  # fmt: skip
def test_inputs_that_cannot_be_encoded_are_refused(official: OpenAI, fields: Any) -> None:
    with pytest.raises(BadRequestError):
        official.embeddings.create(model="quotewright", **fields)


# Listings


def test_models_and_indexes_are_listed(official: OpenAI, client: TestClient) -> None:
    assert [model.id for model in official.models.list()] == ["tiny-llama", "tiny-bge"]
    assert official.models.retrieve("tiny-bge").owned_by == "quotewright"
    assert {"id": INDEX, "object": "index"} in client.get("/v1/indexes").json()["data"]


def test_an_unknown_model_is_not_found(client: TestClient) -> None:
    reply = client.get("/v1/models/some/other")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "model_not_found")


def test_the_server_says_that_it_is_there(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "queued": 0}
