"""Prefix reuse: what a session had read is not read again, changes no answer, is bounded, and is nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.drafter import DraftRequest
from decoding.drafters import make_drafter
from decoding.loop import DecodeRequest, Step, decode
from decoding.prefixes import KeptPrefixes
from decoding.tree import DraftTree
from indexes.errors import SettingError
from tests.decoding.tiny import ARCHITECTURES, KERNELS, LEAN, prompt_tokens, tiny_target

PLENTY = 2**30
every_target = pytest.mark.parametrize("name", [*ARCHITECTURES, *LEAN, *KERNELS])


@dataclass
class Counted:
    """Passes everything on to a target, and notes how many tokens each prefill read."""

    inner: Any
    read: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def prefill(self, tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        self.read.append(len(tokens) - cached)
        logits: torch.Tensor = self.inner.prefill(tokens, cached)
        return logits

    def forward(self, last: int, tree: DraftTree) -> torch.Tensor:
        logits: torch.Tensor = self.inner.forward(last, tree)
        return logits


def answer(
    target: Any, kept: KeptPrefixes | None, owner: str | None, prompt: tuple[int, ...], length: int = 8
) -> tuple[int, ...]:
    cached = kept.begin(owner, prompt) if kept else 0
    request = DecodeRequest(DraftRequest(prompt), length, cached=cached)
    steps = [event for event in decode(target, make_drafter("trie"), request) if isinstance(event, Step)]
    tokens = tuple(token for step in steps for token in step.tokens)
    if kept:
        kept.end(owner, (*prompt, *tokens))
    return tokens


@every_target
def test_a_second_turn_reads_only_what_is_new_and_answers_the_same(name: str) -> None:
    target: Any = Counted(tiny_target(name))
    kept = KeptPrefixes(target, PLENTY)
    first = answer(target, kept, "ann", prompt_tokens(1))
    follow_up = (*prompt_tokens(1), *first, 5, 6, 7)
    again = answer(target, kept, "ann", follow_up)
    assert target.read == [20, 4]  # the last token of an answer is never read
    assert again == answer(tiny_target(name), None, None, follow_up)


@pytest.mark.parametrize("name", ["llama", "gemma2", "lean qwen3", *KERNELS])
@settings(max_examples=20)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", "cyd", None]), st.integers(0, 2), st.integers(1, 30), st.integers(0, 12)
        ),
        max_size=8,
    ),
    limit=st.sampled_from([0, 3000, 20_000, PLENTY]),
)
def test_whoever_asks_what_in_whatever_order_every_answer_is_that_of_a_fresh_cache(
    name: str, asked: list[tuple[str | None, int, int, int]], limit: int
) -> None:
    target = tiny_target(name)
    kept = KeptPrefixes(target, limit)
    for owner, seed, length, tail in asked:
        prompt = prompt_tokens(seed, length) + prompt_tokens(seed + length, tail)
        found = answer(target, kept, owner, prompt)
        assert kept.memory_bytes <= limit
        other = tiny_target(name).snapshot()
        assert found == answer(tiny_target(name), None, None, prompt)
        tiny_target(name).restore(other)


def test_nobodys_tokens_are_reused_for_another() -> None:
    target: Any = Counted(tiny_target("llama"))
    kept = KeptPrefixes(target, PLENTY)
    for owner in ("ann", "bob", None, "cyd"):
        answer(target, kept, owner, prompt_tokens(1))
    assert target.read == [20, 20, 20, 20]


def test_a_session_that_comes_back_finds_its_tokens_again() -> None:
    target: Any = Counted(tiny_target("kernels, bfloat16"))
    kept = KeptPrefixes(target, PLENTY)
    for owner in ("ann", "bob", "ann", "bob"):
        answer(target, kept, owner, prompt_tokens(1))
    assert target.read == [20, 20, 1, 1]


def test_the_session_unused_for_longest_is_dropped_first() -> None:
    target: Any = Counted(tiny_target("llama"))
    kept = KeptPrefixes(target, PLENTY)
    for owner in ("ann", "bob", "cyd"):
        answer(target, kept, owner, prompt_tokens(1))
    one = kept.memory_bytes // 2
    kept = KeptPrefixes(target, 2 * one)
    for owner in ("ann", "bob", "cyd", "dan"):  # ann's is dropped when cyd's is put aside
        answer(target, kept, owner, prompt_tokens(1))
    target.read.clear()
    answer(target, kept, "cyd", prompt_tokens(1))
    answer(target, kept, "ann", prompt_tokens(1))
    assert target.read == [1, 20]


def test_what_is_forgotten_is_read_again() -> None:
    target: Any = Counted(tiny_target("llama"))
    kept = KeptPrefixes(target, PLENTY)
    for owner in ("ann", "bob"):
        answer(target, kept, owner, prompt_tokens(1))
        kept.forget("ann")
        kept.forget("bob")
    assert (kept.memory_bytes, target.length) == (0, 0)
    answer(target, kept, "ann", prompt_tokens(1))
    assert target.read == [20, 20, 20]


def test_a_cache_that_somebody_else_has_used_is_not_believed() -> None:
    target: Any = Counted(tiny_target("llama"))
    kept = KeptPrefixes(target, PLENTY)
    first = answer(target, kept, "ann", prompt_tokens(1))
    target.inner.prefill(prompt_tokens(2))
    target.truncate(0)
    assert answer(target, kept, "ann", prompt_tokens(1)) == first


def test_an_answer_given_up_on_the_way_leaves_what_was_read() -> None:
    target: Any = Counted(tiny_target("llama"))
    kept = KeptPrefixes(target, PLENTY)
    prompt = prompt_tokens(1)
    cached = kept.begin("ann", prompt)
    events: Any = decode(target, make_drafter("plain"), DecodeRequest(DraftRequest(prompt), 9, cached=cached))
    tokens = [token for _ in range(3) for token in next(events).tokens]
    kept.end("ann", (*prompt, *tokens))
    fresh = answer(tiny_target("lean llama"), None, None, (*prompt, *tokens))
    assert answer(target, kept, "ann", (*prompt, *tokens)) == fresh
    assert target.read == [20, 1]


@pytest.mark.parametrize("cached", [-1, 20, 21])
def test_a_prompt_cannot_be_in_the_cache_as_a_whole(cached: int) -> None:
    request = DecodeRequest(DraftRequest(prompt_tokens(1)), 8, cached=cached)
    with pytest.raises(SettingError, match=f"cached is {cached}; of 20 tokens the last one is always read"):
        list(decode(tiny_target("llama"), make_drafter("plain"), request))
