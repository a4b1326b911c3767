"""The drafters: what each proposes, from plain token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.drafter import Drafter, DraftRequest, Observation
from decoding.drafters.llma import LlmaDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.tree import EMPTY, DraftTree
from tests.decoding.drafting import CONTEXT, MAKERS, REFERENCES, TOKENS, WARM, request, started

every_drafter = pytest.mark.parametrize(
    "make", [*MAKERS.values(), lambda: LlmaDrafter(tie_seed=1)], ids=[*MAKERS, "llma, random ties"]
)


def plain(tree: DraftTree) -> list[list[float]]:
    return [tree.tokens.tolist(), tree.parents.tolist(), tree.probs.tolist(), tree.sources.tolist()]


def answer(drafter: Drafter, asked: DraftRequest, context: Sequence[int]) -> list[list[list[float]]]:
    """All drafts for a growing context."""
    drafter.start(asked)
    return [plain(drafter.propose(context[: end + 1], 8)) for end in range(len(context))]


@every_drafter
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT, max_nodes=st.integers(0, 12))
def test_no_drafter_proposes_more_than_max_nodes(
    make: Callable[[], Drafter],
    references: list[tuple[int, ...]],
    prompt: tuple[int, ...],
    context: tuple[int, ...],
    max_nodes: int,
) -> None:
    assert len(started(make(), references, prompt).propose(context, max_nodes)) <= max_nodes


@every_drafter
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT)
def test_no_drafter_drafts_a_token_twice_below_one_node(
    make: Callable[[], Drafter], references: list[tuple[int, ...]], prompt: tuple[int, ...], context: tuple[int, ...]
) -> None:
    tree = started(make(), references, prompt).propose(context, 12)
    places = list(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True))
    assert len(set(places)) == len(places)


@every_drafter
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT)
def test_probabilities_lie_between_0_and_1_and_never_grow_downwards(
    make: Callable[[], Drafter], references: list[tuple[int, ...]], prompt: tuple[int, ...], context: tuple[int, ...]
) -> None:
    tree = started(make(), references, prompt).propose(context, 12)
    above = [1.0 if parent < 0 else tree.probs[parent] for parent in tree.parents.tolist()]
    assert all(0 < prob <= limit for prob, limit in zip(tree.probs.tolist(), above, strict=True))


@every_drafter
@given(before=st.tuples(REFERENCES, TOKENS, CONTEXT), now=st.tuples(REFERENCES, TOKENS, CONTEXT), reset=st.booleans())
def test_an_answer_after_another_is_drafted_as_by_a_fresh_drafter(
    make: Callable[[], Drafter],
    before: tuple[list[tuple[int, ...]], tuple[int, ...], tuple[int, ...]],
    now: tuple[list[tuple[int, ...]], tuple[int, ...], tuple[int, ...]],
    reset: bool,
) -> None:
    used = make()
    answer(used, request(*before[:2]), before[2])
    used.observe(Observation(EMPTY, (), before[2][-1:]))
    if reset or make in [MAKERS[name] for name in WARM]:
        used.reset()
    assert answer(used, request(*now[:2]), now[2]) == answer(make(), request(*now[:2]), now[2])


@every_drafter
def test_after_reset_a_drafter_knows_nothing_of_references_and_prompt(make: Callable[[], Drafter]) -> None:
    drafter = started(make(), [(1, 2, 3, 4)], (1, 2, 3, 4))
    drafter.reset()
    assert len(drafter.propose((1, 2), 8)) == 0


@every_drafter
def test_without_references_and_prompt_a_first_token_gets_no_draft(make: Callable[[], Drafter]) -> None:
    assert len(started(make(), []).propose((1,), 8)) == 0


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - WARM))
@given(references=REFERENCES, prompt=TOKENS, context=CONTEXT, ends=st.sets(st.integers(1, 14)))
def test_a_draft_depends_on_the_context_only_not_on_how_it_grew(
    name: str, references: list[tuple[int, ...]], prompt: tuple[int, ...], context: tuple[int, ...], ends: set[int]
) -> None:
    grown = started(MAKERS[name](), references, prompt)
    for end in sorted(ends):
        grown.propose(context[:end], 8)
    fresh = started(MAKERS[name](), references, prompt)
    assert plain(grown.propose(context, 8)) == plain(fresh.propose(context, 8))


def test_plain_drafts_nothing_though_everything_is_known() -> None:
    assert len(started(PlainDrafter(), [(1, 2, 3)], (1, 2, 3)).propose((1, 2), 8)) == 0
