"""The target's choice after each row of its logits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.choices import choose, read_before
from decoding.sampling import Sampling
from decoding.tree import EMPTY, DraftTree, chain, limited, make_tree
from indexes.errors import ModelError
from tests.decoding.hostile import trees
from tests.decoding.test_sampling import SETTINGS
from tests.decoding.tiny import VOCABULARY

NUCLEUS = Sampling(temperature=1.2, top_p=0.9, repetition_penalty=1.3, seed=5)


def random_logits(rows: int, seed: int, vocabulary: int = VOCABULARY) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


def test_before_a_row_stand_the_context_and_the_nodes_of_its_own_path() -> None:
    # root -> 7 (node 0) -> 8 (node 2); root -> 9 (node 1)
    before = read_before(make_tree([7, 9, 8], [-1, -1, 0]), (5, 4, 5))
    assert [set(row) for row in before.tolist()] == [{4, 5}, {4, 5, 7}, {4, 5, 9}, {4, 5, 7, 8}]


def test_without_a_draft_only_the_context_stands_before() -> None:
    assert read_before(EMPTY, (5, 4, 5)).tolist() == [[4, 5]]


@given(trees(), st.integers(0, 99), st.sampled_from(sorted(SETTINGS)))
def test_a_node_s_choice_is_the_one_of_plain_decoding_after_the_same_tokens(
    drafted: DraftTree, seed: int, name: str
) -> None:
    tree = limited(drafted, 24, 24, VOCABULARY)
    logits = random_logits(len(tree) + 1, seed)
    context = (3, 1, 4, 1, 5)
    choices = choose(logits, tree, context, SETTINGS[name])
    paths: list[tuple[int, ...]] = [()]
    for parent, token in zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True):
        paths.append((*paths[parent + 1], token))
    for row, path in enumerate(paths):
        assert choices[row] == choose(logits[row : row + 1], EMPTY, context + path, SETTINGS[name])[0]


@given(trees(), st.integers(0, 99), st.sampled_from(sorted(SETTINGS)))
def test_choosing_all_rows_at_once_gives_what_choosing_each_alone_gives(
    drafted: DraftTree, seed: int, name: str
) -> None:
    tree = limited(drafted, 24, 24, VOCABULARY)
    logits = random_logits(len(tree) + 1, seed)
    each, together = (choose(logits, tree, (3, 1, 4), SETTINGS[name], at_once) for at_once in (False, True))
    assert [each[row] for row in range(len(tree) + 1)] == [together[row] for row in range(len(tree) + 1)]
    assert each.likeliest == together.likeliest == logits.argmax(-1).tolist()


def test_a_choice_depends_on_the_number_of_tokens_before_it_not_on_prompt_and_answer_apart() -> None:
    sampling = Sampling(temperature=2.0, seed=1)
    logits = random_logits(1, 0).expand(2, -1)
    assert choose(logits, chain([9]), (1, 2), sampling)[1] == choose(logits, EMPTY, (6, 6, 6), sampling)[0]


def test_the_same_logits_at_many_positions_give_many_tokens() -> None:
    logits = torch.zeros(1, VOCABULARY)
    found = {choose(logits, EMPTY, (0,) * length, Sampling(temperature=1.0))[0] for length in range(1, 200)}
    assert len(found) > VOCABULARY / 2


def test_greedy_choices_are_the_first_of_the_largest_logits() -> None:
    choices = choose(torch.tensor([[1.0, 2.0, 2.0], [0.0, -1.0, -2.0]]), chain([1]), (1,))
    assert (choices[0], choices[1]) == (1, 0)


def test_the_penalty_changes_greedy_choices_only_below_the_node_with_that_token() -> None:
    # 1 leads by a little: it is chosen unless it stands before
    logits = torch.tensor([[1.0, 1.1, 0.0]]).expand(3, -1)
    choices = choose(logits, make_tree([1, 2], [-1, -1]), (2,), Sampling(repetition_penalty=1.5))
    assert [choices[row] for row in range(3)] == [1, 0, 1]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=1.1), NUCLEUS], ids=str)
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("broken", [[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf], [math.nan, math.inf]])
def test_broken_logits_are_refused_by_name_where_they_are_looked_up_and_only_there(
    sampling: Sampling, at_once: bool, broken: list[float]
) -> None:
    choices = choose(torch.tensor([[1.0, 50.0], broken]), chain([0]), (0,), sampling, at_once)
    assert choices[0] == 1
    with pytest.raises(ModelError, match=r"logits are not finite numbers.*--dtype float32"):
        choices[1]


@pytest.mark.parametrize("sampling", [Sampling(), NUCLEUS], ids=str)
def test_masked_tokens_beside_finite_ones_are_no_fault(sampling: Sampling) -> None:
    assert choose(torch.tensor([[-math.inf, 2.0, -math.inf]]), EMPTY, (0,), sampling)[0] == 1
