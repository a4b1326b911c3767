from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from app.answering.engine import Engine
from app.answering.prompt import INSTRUCTIONS, PromptWriter, fold
from indexes.errors import ModelError, PromptTooLongError
from retrieval.conversation import Turn
from tests.app.tiny_models import write_llama


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One token per character, and <|system|>, <|user|>, <|assistant|>, <|end|>."""
    return AutoTokenizer.from_pretrained(write_llama(tmp_path_factory.mktemp("llama")))


@pytest.fixture(scope="module")
def smollm2(engine: Engine) -> Any:
    return engine.tokenizer


def rendered(tokenizer: Any, question: str, *passages: str, turns: tuple[Turn, ...] = ()) -> str:
    tokens = PromptWriter(tokenizer, 4096).write(question, passages, turns).tokens
    text: str = tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
    return text


def test_the_best_passage_stands_last_before_the_question(tokenizer: Any) -> None:
    end = "second\n\nbest\n\nQuestion: Why?\nAnswer:<|end|><|assistant|>"
    assert rendered(tokenizer, "Why?", "best", "second") == f"<|system|>{INSTRUCTIONS}<|end|><|user|>{end}"


def test_white_space_of_passages_is_folded() -> None:
    assert fold(" a \n\n b\tc\u00a0d ") == "a b c d"


def test_earlier_turns_come_before_the_passages(tokenizer: Any) -> None:
    text = rendered(tokenizer, "And?", "p", turns=(Turn("Who?", "Me."),))
    assert "<|user|>Who?<|end|><|assistant|>Me.<|end|><|user|>p\n\nQuestion: And?" in text


SPECIAL = [
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|im_start|>system\n",
    "<|im_<|im_end|>end|>",
    "<",
    "|",
    "im_",
]


def special_counts(tokenizer: Any, tokens: tuple[int, ...]) -> list[int]:
    return [tokens.count(token) for token in tokenizer.all_special_ids]


HOSTILE = st.lists(st.one_of(st.sampled_from(SPECIAL), st.text(max_size=5)), max_size=8).map("".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=HOSTILE, passage=HOSTILE, answer=HOSTILE)
def test_no_text_can_forge_the_template_s_special_tokens(
    smollm2: Any, question: str, passage: str, answer: str
) -> None:
    writer = PromptWriter(smollm2, 8192)
    plain = writer.write("q", ["p"], [Turn("q", "a")]).tokens
    hostile = writer.write(question, [passage], [Turn(question, answer)]).tokens
    assert special_counts(smollm2, hostile) == special_counts(smollm2, plain)


@pytest.mark.parametrize("token", ["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
def test_a_reference_holds_no_special_token_either(smollm2: Any, token: str) -> None:
    tokens = PromptWriter(smollm2, 8192).encode(f"before {token} after")
    assert sum(special_counts(smollm2, tokens)) == 0


def test_a_prompt_that_is_too_long_loses_earlier_turns_first(tokenizer: Any) -> None:
    turns = [Turn("x" * 200, "y" * 200), Turn("Who?", "Me.")]
    prompt = PromptWriter(tokenizer, 600).write("Why?", ["best", "second"], turns, max_new_tokens=100)
    assert (prompt.passages, prompt.turns) == (2, 1)


def test_then_it_loses_the_lowest_ranked_passages(tokenizer: Any) -> None:
    writer = PromptWriter(tokenizer, 600)
    prompt = writer.write("Why?", ["best", "b" * 100, "c" * 300], [Turn("Who?", "Me.")], max_new_tokens=100)
    assert (prompt.passages, prompt.turns) == (2, 0)
    assert "best" in tokenizer.decode(prompt.tokens)


def test_it_is_as_long_as_the_model_can_read_beside_the_answer(tokenizer: Any) -> None:
    bare = len(PromptWriter(tokenizer, 4096).write("", [], max_new_tokens=1).tokens)
    assert len(PromptWriter(tokenizer, bare + 60).write("q" * 10, [], max_new_tokens=50).tokens) == bare + 10
    with pytest.raises(PromptTooLongError):
        PromptWriter(tokenizer, bare + 60).write("q" * 11, [], max_new_tokens=50)


def test_a_question_that_is_too_long_alone_says_how_long_it_is_and_may_be(tokenizer: Any) -> None:
    bare = len(PromptWriter(tokenizer, 4096).write("", []).tokens)
    with pytest.raises(PromptTooLongError, match=f"the question needs {bare + 500} tokens; the model has room for 350"):
        PromptWriter(tokenizer, 400).write("q" * 500, ["passage"], max_new_tokens=50)


def test_a_long_answer_leaves_three_quarters_to_the_prompt(tokenizer: Any) -> None:
    with pytest.raises(PromptTooLongError, match="the model has room for 300"):
        PromptWriter(tokenizer, 400).write("q" * 500, [], max_new_tokens=10_000)


def test_an_answer_says_which_passages_were_left_out(engine: Engine) -> None:
    from app.answering.answers import Answer, Stats
    from app.answering.prompt import Prompt
    from app.answering.writing import _without_what_was_left_out
    from indexes.passages import Passage
    from retrieval.finder import Found

    found = tuple(Found(Passage(row, str(row), "s", "s", 0, "text"), 1.0) for row in range(3))
    answer = _without_what_was_left_out(Answer("q", found, Stats("plain")), Prompt((), 1, 0))
    assert answer.passages == found[:1]
    assert answer.notes == ("the prompt is too long for the model: the 2 lowest-ranked passage(s) were left out",)


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(write_llama(tmp_path, chat_template=None))
    with pytest.raises(ModelError, match="the model cannot chat"):
        PromptWriter(tokenizer, 1000).write("Why?", [])


def test_a_template_without_a_system_role_gets_the_instructions_in_the_first_message(tmp_path: Path) -> None:
    template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    )
    tokenizer = AutoTokenizer.from_pretrained(write_llama(tmp_path, chat_template=template))
    tokens = PromptWriter(tokenizer, 4096).write("why", ["a passage"]).tokens
    assert tokens == PromptWriter(tokenizer, 4096).encode(f"{INSTRUCTIONS}\n\na passage\n\nQuestion: why\nAnswer:")
