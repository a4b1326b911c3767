"""Where an answer ends: exactly where plain decoding ends, whatever a draft reaches beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decoding.drafter import DraftRequest, Observation
from decoding.drafters import DRAFTERS, make_drafter
from decoding.drafters.ngram_trie import NgramTrieDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.hf_target import HuggingFaceTarget
from decoding.loop import DecodeRequest, Finished, Step, decode
from decoding.tree import DraftTree, chain
from indexes.errors import PromptTooLongError, SettingError
from tests.decoding.hostile import Oracle, OracleDrafter, oracles
from tests.decoding.tiny import (
    ANSWER,
    ARCHITECTURES,
    CONTEXT,
    copied_request,
    emitted,
    events,
    plain_answer,
    prompt_tokens,
    tiny_model,
)
from tests.decoding.tiny import tiny_target as target

LONG_PROMPT = prompt_tokens(0, CONTEXT - 10)
PERFECT = [Oracle(right=8, wrong=0, decoys=0, twins=False)]


@settings(max_examples=60)
@given(
    limit=st.integers(1, ANSWER),
    stops_at=st.sets(st.integers(0, ANSWER - 1), max_size=3),
    shapes=st.lists(oracles, min_size=1, max_size=4),
)
def test_token_limit_and_stop_tokens_inside_a_draft_cut_where_plain_decoding_ends(
    limit: int, stops_at: set[int], shapes: list[Oracle]
) -> None:
    stops = frozenset(plain_answer("llama")[at] for at in stops_at)
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), limit, stops, max_nodes=40)
    assert emitted("llama", OracleDrafter(plain_answer("llama"), shapes), request) == emitted(
        "llama", PlainDrafter(), request
    )


@settings(max_examples=30)
@given(room=st.integers(1, 12), limit=st.integers(1, 14), shapes=st.lists(oracles, min_size=1, max_size=4))
@example(room=6, limit=6, shapes=PERFECT)
@example(room=6, limit=7, shapes=PERFECT)
def test_the_context_limit_inside_a_draft_cuts_where_plain_decoding_ends(
    room: int, limit: int, shapes: list[Oracle]
) -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0, CONTEXT - room)), limit, max_nodes=40)
    plain = emitted("gpt2", PlainDrafter(), request)
    assert emitted("gpt2", OracleDrafter(plain[0], shapes), request) == plain
    assert plain == (plain[0], Finished("length" if limit <= room else "context"))
    assert len(plain[0]) == min(room, limit)


def test_a_stop_token_in_the_middle_of_a_draft_is_the_last_token_and_the_reason() -> None:
    answer = plain_answer("llama")
    stop = answer[5]
    assert stop not in answer[:5]
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, frozenset([stop]))
    steps, end = events("llama", OracleDrafter(answer, PERFECT), request)
    assert [step.tokens for step in steps] == [answer[:1], answer[1:6]]
    assert end == Finished("stop")


def test_drafted_tokens_after_a_stop_token_are_not_counted_as_accepted() -> None:
    answer = plain_answer("llama")
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, frozenset([answer[5]]))
    last = events("llama", OracleDrafter(answer, PERFECT), request)[0][-1]
    assert (last.nodes, last.accepted, len(last.sources)) == (8, 5, 5)


def test_a_stop_token_from_the_prefill_ends_the_answer_at_once() -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER, frozenset([plain_answer("llama")[0]]))
    assert emitted("llama", make_drafter("trie"), request) == (plain_answer("llama")[:1], Finished("stop"))


def test_the_token_limit_in_the_middle_of_a_draft_is_kept_and_is_the_reason() -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), 5)
    tokens, end = emitted("llama", OracleDrafter(plain_answer("llama"), PERFECT), request)
    assert (tokens, end) == (plain_answer("llama")[:5], Finished("length"))


def test_a_stop_token_that_is_the_last_allowed_token_counts_as_stop() -> None:
    answer = plain_answer("llama")
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), 6, frozenset([answer[5]]))
    assert emitted("llama", OracleDrafter(answer, PERFECT), request) == (answer[:6], Finished("stop"))


def test_the_context_is_filled_to_the_last_token_and_is_the_reason() -> None:
    tokens, end = emitted("llama", make_drafter("trie"), DecodeRequest(DraftRequest(LONG_PROMPT), 100))
    assert (len(tokens), end) == (10, Finished("context"))


def test_no_draft_is_asked_for_when_only_one_more_token_is_allowed() -> None:
    drafter = OracleDrafter(plain_answer("llama"), PERFECT)
    emitted("llama", drafter, DecodeRequest(DraftRequest(prompt_tokens(0)), 2))
    assert drafter.asked == 0


def test_sources_name_the_reference_of_each_accepted_token() -> None:
    answer = plain_answer("llama")
    request = DecodeRequest(copied_request("llama"), ANSWER)
    steps, _ = events("llama", make_drafter("llma"), request)
    sources = [source for step in steps for source in step.sources]
    assert len(sources) == sum(step.accepted for step in steps)
    assert set(sources) <= {0, 1}
    assert 0 in sources
    assert len(answer) == sum(len(step.tokens) for step in steps)


def test_the_first_step_is_the_prefill_with_one_token_and_no_nodes() -> None:
    first = events("llama", make_drafter("trie"), DecodeRequest(copied_request("llama"), ANSWER))[0][0]
    assert (first.tokens, first.nodes, first.accepted, first.sources) == (plain_answer("llama")[:1], 0, 0, ())


def test_drafting_time_lies_within_the_time_of_its_step() -> None:
    steps, _ = events("llama", make_drafter("trie"), DecodeRequest(copied_request("llama"), ANSWER))
    assert all(0 <= step.draft_s <= step.duration_s for step in steps)
    assert steps[0].draft_s > 0


def test_observe_is_told_every_token_after_the_first_in_order() -> None:
    @dataclass
    class Listener:
        likely: ClassVar[int] = 2
        heard: list[int] = field(default_factory=list)

        def start(self, request: DraftRequest) -> None:
            """Nothing to prepare."""

        def propose(self, context: Sequence[int], max_nodes: int) -> DraftTree:
            return chain(plain_answer("llama")[len(context) : len(context) + 3])

        def observe(self, observed: Observation) -> None:
            self.heard.extend(observed.tokens)
            assert observed.choices is not None
            assert observed.likely is not None
            assert len(observed.choices) == len(observed.tree) + 1
            assert observed.likely.shape == (len(observed.tree) + 1, 2)
            assert observed.likely[:, 0].tolist() == list(observed.choices)
            assert observed.tokens == (*observed.tree.tokens[list(observed.path)].tolist(), observed.tokens[-1])

        def reset(self) -> None:
            """Nothing to drop."""

    listener = Listener()
    emitted("llama", listener, DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER))
    assert tuple(listener.heard) == plain_answer("llama")[1:]


@pytest.mark.parametrize("passes", [0, 1, 2, 3])
def test_a_cancelled_answer_makes_no_further_forward_pass(passes: int) -> None:
    seen: list[Step] = []
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER)
    for event in decode(target("llama"), PlainDrafter(), request, lambda: len(seen) >= passes):
        if isinstance(event, Step):
            seen.append(event)
        else:
            assert event == Finished("cancelled")
    assert tuple(token for step in seen for token in step.tokens) == plain_answer("llama")[:passes]


def test_an_answer_cancelled_while_a_pass_runs_ends_within_two_forward_passes() -> None:
    model = tiny_model(*ARCHITECTURES["llama"])
    counted = HuggingFaceTarget(model)
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER)
    passes = 0
    cancelled = False

    def count(*_: object) -> None:
        nonlocal passes, cancelled
        passes += 1
        cancelled = passes >= 4

    model.register_forward_hook(count)
    found = list(decode(counted, PlainDrafter(), request, lambda: cancelled))
    assert found[-1] == Finished("cancelled")
    assert passes <= 6


def test_an_answer_after_a_cancelled_and_an_abandoned_one_is_a_fresh_one() -> None:
    request = DecodeRequest(copied_request("llama"), ANSWER)
    abandoned = decode(target("llama"), make_drafter("trie"), request)
    for _ in range(3):
        next(abandoned)
    list(decode(target("llama"), make_drafter("trie"), request, lambda: True))
    assert emitted("llama", make_drafter("trie"), request)[0] == plain_answer("llama")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_token_limit_below_one_is_refused_by_name_and_value(limit: int) -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0)), limit)
    with pytest.raises(SettingError, match=rf"max_new_tokens is {limit}; it must be at least 1"):
        next(decode(target("llama"), PlainDrafter(), request))


@pytest.mark.parametrize("length", [0, CONTEXT, CONTEXT + 1])
def test_a_prompt_that_leaves_no_room_is_refused_with_the_lengths(length: int) -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0, length)))
    with pytest.raises(PromptTooLongError, match=rf"{length} tokens; the model reads 1 to {CONTEXT - 1}"):
        next(decode(target("llama"), PlainDrafter(), request))


def test_a_prompt_one_token_short_of_the_context_gets_one_token() -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(0, CONTEXT - 1)))
    tokens, end = emitted("llama", make_drafter("trie"), request)
    assert (len(tokens), end) == (1, Finished("context"))


def test_defaults_are_256_tokens_16_nodes_and_no_stop_token() -> None:
    request = DecodeRequest(DraftRequest((1,)))
    assert (request.max_new_tokens, request.max_nodes, request.stop_tokens) == (256, 16, frozenset())


def test_make_drafter_makes_the_drafter_of_that_name() -> None:
    assert isinstance(make_drafter("plain"), PlainDrafter)
    assert isinstance(make_drafter("trie"), NgramTrieDrafter)


def test_an_unknown_drafter_is_refused_with_the_names_to_choose_from() -> None:
    with pytest.raises(SettingError, match=f"unknown drafter 'magic'; choose one of {', '.join(DRAFTERS)}"):
        make_drafter("magic")
