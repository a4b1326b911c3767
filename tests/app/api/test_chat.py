"""/v1/chat/completions with the official client, against a server on a real port."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from openai import BadRequestError, NotFoundError, OpenAI

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from decoding.sampling import Sampling

ASKED: Any = [{"role": "user", "content": "what is a lambda?"}]
MODEL = "tiny-llama"


def expected(engine: Engine, messages: Any = ASKED, **options: Any) -> str:
    *_, answer = engine.complete(messages, options=AnswerOptions(**options))
    return answer.text


def test_a_completion_is_what_the_engine_writes(official: OpenAI, tiny: Engine) -> None:
    reply = official.chat.completions.create(model=MODEL, messages=ASKED)
    assert reply.choices[0].message.content == expected(tiny)
    assert (reply.choices[0].finish_reason, reply.object, reply.model) == ("length", "chat.completion", MODEL)
    assert reply.usage is not None
    # the template's <|user|>, 17 characters, <|end|> and <|assistant|>; 12 tokens were set
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (20, 12, 32)
    assert (reply.system_fingerprint or "").startswith("qw-")


def test_a_stream_s_pieces_make_the_same_text_and_its_end_tells_the_usage(official: OpenAI, tiny: Engine) -> None:
    chunks = list(
        official.chat.completions.create(
            model=MODEL, messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == expected(tiny)
    assert len([piece for piece in pieces if piece]) > 1
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["length"]
    assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [32]
    assert chunks[-1].choices == []
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_without_that_wish_tells_no_usage(official: OpenAI) -> None:
    chunks = list(official.chat.completions.create(model=MODEL, messages=ASKED, stream=True))
    assert [chunk.usage for chunk in chunks if chunk.usage] == []
    assert chunks[-1].choices[0].finish_reason == "length"


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_both_names_of_the_token_limit_count(official: OpenAI, field: str) -> None:
    limit: Any = {field: 3}
    reply = official.chat.completions.create(model=MODEL, messages=ASKED, **limit)
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 3


def test_sampling_is_that_of_the_request(official: OpenAI, tiny: Engine) -> None:
    reply = official.chat.completions.create(
        model=MODEL, messages=ASKED, temperature=1.5, top_p=0.9, seed=7, extra_body={"top_k": 40, "min_p": 0.01}
    )
    sampling = Sampling(1.5, 0.9, 40, 0.01, seed=7)
    assert reply.choices[0].message.content == expected(tiny, sampling=sampling) != expected(tiny)


def test_a_negative_seed_counts_from_the_top(official: OpenAI, tiny: Engine) -> None:
    reply = official.chat.completions.create(model=MODEL, messages=ASKED, temperature=1, seed=-1)
    assert reply.choices[0].message.content == expected(tiny, sampling=Sampling(1, seed=2**64 - 1))


@pytest.mark.parametrize("many", [False, True])
def test_an_answer_ends_before_a_stop_text(official: OpenAI, tiny: Engine, many: bool) -> None:
    whole = expected(tiny)
    stop = whole[4:6]
    reply = official.chat.completions.create(model=MODEL, messages=ASKED, stop=["never", stop] if many else stop)
    assert reply.choices[0].message.content == whole[: whole.index(stop)].rstrip()
    assert reply.choices[0].finish_reason == "stop"


def test_content_may_be_a_list_of_texts_and_a_developer_is_the_system(official: OpenAI, tiny: Engine) -> None:
    messages: Any = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "what is"}, {"type": "text", "text": "a lambda?"}]},
    ]
    told = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is\na lambda?"}]
    reply = official.chat.completions.create(model=MODEL, messages=messages)
    assert reply.choices[0].message.content == expected(tiny, told)


def test_spans_are_found_in_the_references_of_the_request(official: OpenAI, tiny: Engine) -> None:
    answer = expected(tiny, max_new_tokens=40)
    references = [{"id": "mine", "text": "nothing of it"}, {"text": f"before {answer} after"}]
    reply = official.chat.completions.create(
        model=MODEL, messages=ASKED, max_tokens=40, extra_body={"references": references}
    )
    added = (reply.model_extra or {})["quotewright"]
    assert reply.choices[0].message.content == answer
    assert set(added) == {"passages", "spans", "stats", "finished", "notes"}
    assert added["spans"]
    for span in added["spans"]:
        source = references[1]["text"][span["passage_start"] : span["passage_end"]]
        assert (span["passage_id"], answer[span["start"] : span["end"]]) == ("2", source)


def test_messages_before_the_last_and_a_long_last_one_are_passages_too(client: TestClient) -> None:
    messages = [{"role": "user", "content": "first"}, {"role": "assistant", "content": " "}, *ASKED]
    body = {"messages": messages, "references": [{"id": "mine", "text": "x"}]}
    passages = client.post("/v1/chat/completions", json=body).json()["quotewright"]["passages"]
    assert [(one["id"], one["text"]) for one in passages] == [("mine", "x"), ("message-0", "first")]
    long = "words " * 40
    passages = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": long}]}).json()
    assert [one["id"] for one in passages["quotewright"]["passages"]] == ["message-0"]


def test_unknown_fields_are_ignored_and_neutral_ones_accepted(client: TestClient) -> None:
    body = {
        "messages": ASKED, "store": True, "metadata": {"a": "b"}, "n": 1, "logprobs": False, "tools": [],
        "frequency_penalty": 0.0, "presence_penalty": 0, "response_format": {"type": "text"}, "tool_choice": "none",
    }  # fmt: skip
    assert client.post("/v1/chat/completions", json=body).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2), ("n", True), ("logprobs", True), ("frequency_penalty", 0.5), ("tools", [{"type": "function"}]),
        ("response_format", {"type": "json_object"}), ("logit_bias", {"5": 1}),
    ],
)  # fmt: skip
def test_what_would_change_the_answer_and_cannot_be_honoured_is_refused_by_name(
    client: TestClient, field: str, value: Any
) -> None:
    reply = client.post("/v1/chat/completions", json={"messages": ASKED, field: value})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"], error["type"]) == (400, field, "invalid_request_error")
    assert "this server does not support it; leave it out" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_refused_before_a_stream_begins(official: OpenAI, stream: bool) -> None:
    with pytest.raises(BadRequestError) as caught:
        official.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "a" * 5000}], stream=stream
        )  # fmt: skip
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "tool", "content": "x", "tool_call_id": "1"}], "messages.0.role"),
        ([{"role": "assistant", "content": None}], "messages.0.content"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "messages.0.content"),
        ([], "messages"),
    ],
)
def test_messages_that_the_model_cannot_be_told_are_named(official: OpenAI, messages: Any, param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        official.chat.completions.create(model=MODEL, messages=messages)
    assert (caught.value.param or "").startswith(param)


def test_a_model_that_is_not_served_is_not_found(official: OpenAI) -> None:
    with pytest.raises(NotFoundError, match="there is no model 'gpt-9' here; use 'tiny-llama'") as caught:
        official.chat.completions.create(model="gpt-9", messages=ASKED)
    assert caught.value.code == "model_not_found"


def test_more_tokens_than_the_server_gives_are_refused(official: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="up to 4096 tokens here, not 5000"):
        official.chat.completions.create(model=MODEL, messages=ASKED, max_tokens=5000)
