"""The decode loop against a target with broken logits and drafters that break what they are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch

from decoding.drafter import Drafter, DraftRequest, Observation
from decoding.drafters.plain import PlainDrafter
from decoding.hf_target import HuggingFaceTarget
from decoding.loop import DecodeRequest, Finished, Step, decode
from decoding.sampling import Sampling
from decoding.tree import DraftTree, chain, make_tree
from indexes.errors import ModelError
from tests.decoding.hostile import Oracle, OracleDrafter, TreesDrafter
from tests.decoding.tiny import ANSWER, ARCHITECTURES, VOCABULARY, emitted, plain_answer, prompt_tokens, tiny_model

WAYS = {
    "greedy": Sampling(),
    "greedy with penalty": Sampling(repetition_penalty=1.2),
    "sampled": Sampling(temperature=1.2, top_p=0.9, top_k=40, min_p=0.01, repetition_penalty=1.1, seed=6),
}
every_way = pytest.mark.parametrize("way", WAYS)
BROKEN = {
    "NaN": [math.nan] * VOCABULARY,
    "one NaN": [math.nan] + [0.0] * (VOCABULARY - 1),
    "infinite": [math.inf] + [0.0] * (VOCABULARY - 1),
    "all masked": [-math.inf] * VOCABULARY,
}


@dataclass
class TableTarget:
    """Says of a token what the table (V, V) says, and broken logits after the `bad` token."""

    table: torch.Tensor
    bad: int
    broken: Sequence[float]
    vocabulary: int = VOCABULARY
    context_limit: int = 200

    def _row(self, token: int) -> torch.Tensor:
        return torch.tensor(self.broken) if token == self.bad else self.table[token]

    def prefill(self, tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        return self._row(tokens[-1])

    def forward(self, last: int, tree: DraftTree) -> torch.Tensor:
        return torch.stack([self._row(token) for token in (last, *tree.tokens.tolist())])

    def keep(self, path: Sequence[int]) -> None:
        """Holds nothing."""

    def truncate(self, length: int) -> None:
        """Holds nothing."""


def table_target(broken: str = "NaN", bad: int = 63, masked: bool = True) -> TableTarget:
    """With `masked`, the bad token is never emitted."""
    table = torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(2)) * 2
    if masked:
        table[:, bad] = -math.inf
    return TableTarget(table, bad, BROKEN[broken])


def texts(target: Any, drafter: Drafter, way: str, prompt: tuple[int, ...] = (1, 2, 3)) -> list[int]:
    request = DecodeRequest(DraftRequest(prompt), 30, sampling=WAYS[way])
    return [token for step in decode(target, drafter, request) if isinstance(step, Step) for token in step.tokens]


@every_way
@pytest.mark.parametrize("broken", BROKEN)
def test_broken_logits_after_a_wrong_draft_change_nothing(way: str, broken: str) -> None:
    target = table_target(broken)
    plain = texts(target, PlainDrafter(), way)
    drafts = [make_tree([63, 63, token, 63], [-1, 0, -1, 2]) for token in plain]
    assert texts(target, TreesDrafter(drafts), way) == plain
    assert 63 not in plain


@every_way
@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("drafter", [PlainDrafter(), TreesDrafter([chain([1, 2])])], ids=["plain", "drafted"])
def test_a_target_without_a_next_token_is_refused_as_such(way: str, broken: str, drafter: Drafter) -> None:
    with pytest.raises(ModelError, match="logits are not finite numbers"):
        texts(table_target(broken), drafter, way, (1, 63))
    always = TableTarget(torch.tensor([BROKEN[broken]] * VOCABULARY), -1, ())
    always.table[3] = torch.eye(VOCABULARY)[5] * 1000
    with pytest.raises(ModelError, match="logits are not finite numbers"):
        texts(always, drafter, way, (3,))


@every_way
@pytest.mark.parametrize("name", ["llama", "gpt2", "mistral, sliding"])
def test_a_drafted_token_that_makes_nan_of_every_row_costs_a_pass_and_no_token(name: str, way: str) -> None:
    model = tiny_model(*ARCHITECTURES[name])
    target = HuggingFaceTarget(model)
    plain = texts(target, PlainDrafter(), way, prompt_tokens(0))
    poison = next(token for token in range(VOCABULARY) if token not in {*plain, *prompt_tokens(0)})
    with torch.no_grad():
        model.get_input_embeddings().weight[poison] = math.nan
    assert target.prefill(prompt_tokens(0)).isfinite().all()
    assert target.forward(plain[0], chain([poison])).isnan().all()
    drafts = [make_tree([poison, token, poison], [-1, -1, 1]) for token in plain]
    assert texts(target, TreesDrafter(drafts), way, prompt_tokens(0)) == plain


def test_an_answer_after_a_broken_one_is_a_fresh_one() -> None:
    model = tiny_model(*ARCHITECTURES["llama"])
    target = HuggingFaceTarget(model)
    weights = model.get_input_embeddings().weight
    prompt, request = prompt_tokens(0), DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER)
    with torch.no_grad():
        kept = weights[plain_answer("llama")[4]].clone()
        weights[plain_answer("llama")[4]] = math.nan
        with pytest.raises(ModelError):
            list(decode(target, PlainDrafter(), request))
        weights[plain_answer("llama")[4]] = kept
    assert texts(target, PlainDrafter(), "greedy", prompt) == list(plain_answer("llama")[:30])


def asking(likely: Any, shown: list[int | None]) -> Drafter:
    """A drafter that wants to see a strange number of likeliest tokens, and notes how many it was shown."""

    class Asking(OracleDrafter):
        def observe(self, observed: Observation) -> None:
            shown.append(None if observed.likely is None else observed.likely.shape[1])

    Asking.likely = likely
    return Asking(plain_answer("llama"), [Oracle(3, 1, 1, False)])


@pytest.mark.parametrize(("likely", "shown"), [(-3, None), (10**9, VOCABULARY), (2.9, 2), (True, 1)])
def test_however_many_likeliest_tokens_are_asked_for_as_many_as_there_are_come(likely: Any, shown: int | None) -> None:
    found: list[int | None] = []
    tokens, end = emitted("llama", asking(likely, found), DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER))
    assert (tokens, end.drafter_error, set(found)) == (plain_answer("llama"), None, {shown})


@pytest.mark.parametrize("likely", [math.nan, math.inf, "many", None, [3]])
def test_a_drafter_that_asks_for_no_number_is_switched_off(likely: Any) -> None:
    tokens, end = emitted("llama", asking(likely, []), DecodeRequest(DraftRequest(prompt_tokens(0)), ANSWER))
    assert tokens == plain_answer("llama")
    assert end.drafter_error


@every_way
def test_a_drafter_that_overwrites_what_it_proposed_and_was_shown_changes_nothing(way: str) -> None:
    class Vandal(OracleDrafter):
        def observe(self, observed: Observation) -> None:
            for array in (observed.tree.tokens, observed.tree.parents, observed.tree.sources, observed.likely):
                cast(np.ndarray[Any, Any], array)[:] = -77

    Vandal.likely = 3
    target = HuggingFaceTarget(tiny_model(*ARCHITECTURES["llama"]))
    plain = texts(target, PlainDrafter(), way)
    request = DecodeRequest(DraftRequest((1, 2, 3)), 30, sampling=WAYS[way])
    found = list(decode(target, Vandal(plain, [Oracle(3, 1, 1, True)]), request))
    steps = [step for step in found if isinstance(step, Step)]
    assert [token for step in steps for token in step.tokens] == plain
    assert {source for step in steps for source in step.sources} == {-1}
    assert found[-1] == Finished("length")


def random_numbers() -> tuple[float, float]:
    """The libraries' next ones."""
    return float(torch.rand(())), float(np.random.random())


def test_sampling_neither_reads_nor_moves_the_libraries_own_random_generators() -> None:
    target = HuggingFaceTarget(tiny_model(*ARCHITECTURES["llama"]))
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        numbers = random_numbers()
        torch.manual_seed(seed)
        np.random.seed(seed)
        found.append(texts(target, PlainDrafter(), "sampled"))
        assert random_numbers() == numbers
    assert found[0] == found[1]
