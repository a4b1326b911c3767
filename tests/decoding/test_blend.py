"""The blend drafter: what it copies, what it learns, what it forgets. It is scored by the shipped numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.blend.token_table import plain_table
from decoding.drafter import Observation
from decoding.drafters.blend import REMEMBERED_ANSWERS, BlendDrafter
from decoding.tree import ROOT, DraftTree, make_tree
from indexes.errors import SettingError
from indexes.ngram_counts import count_ngrams
from tests.decoding.drafting import REFERENCES, request

TABLE = plain_table(500)
PASSAGE = tuple(range(100, 140))


def blend(references: Sequence[Sequence[int]] = (), answers: Sequence[Sequence[int]] = ()) -> BlendDrafter:
    drafter = BlendDrafter(TABLE, answers=answers)
    drafter.start(request(references))
    return drafter


def best_path(tree: DraftTree) -> list[int]:
    """The tokens of the likeliest chain, which comes first."""
    chain: list[int] = []
    for node, parent in enumerate(tree.parents.tolist()):
        if parent != node - 1:
            break
        chain.append(int(tree.tokens[node]))
    return chain


def steps(drafter: BlendDrafter, answer: Sequence[int], max_nodes: int = 8) -> int:
    """How many forward passes a target needs that says `answer`."""
    done, count = 1, 0
    while done < len(answer):
        tree = drafter.propose(tuple(answer[:done]), max_nodes)
        node, path = ROOT, []
        for token in answer[done:]:
            below = [
                other for other in range(len(tree)) if tree.parents[other] == node and int(tree.tokens[other]) == token
            ]
            if not below:
                break
            node = below[0]
            path.append(node)
        emitted = tuple(answer[done : done + len(path) + 1])
        drafter.observe(Observation(tree, tuple(path), emitted))
        done += len(emitted)
        count += 1
    return count


def test_a_passage_is_copied_from() -> None:
    tree = blend([PASSAGE]).propose((100, 101, 102), 8)
    assert best_path(tree) == list(PASSAGE[3:11])
    assert tree.sources.tolist() == [0] * 8


def test_probabilities_grow_as_more_of_a_passage_was_copied() -> None:
    drafter = blend([PASSAGE])
    probs = [float(drafter.propose(PASSAGE[:count], 4).probs[0]) for count in (1, 3, 12)]
    assert probs == sorted(probs)
    assert probs[-1] > 0.8


def test_nothing_is_drafted_across_a_passage_s_end() -> None:
    drafter = blend([PASSAGE, (300, 301, 302, 303)])
    assert drafter.propose(PASSAGE[:38], 32).tokens.tolist() == [138, 139]
    assert len(drafter.propose(PASSAGE, 32)) == 0


@given(REFERENCES, st.lists(st.integers(0, 4), min_size=1, max_size=15).map(tuple))
def test_every_pair_of_a_draft_stands_in_a_reference_or_in_the_answer(
    references: list[tuple[int, ...]], context: tuple[int, ...]
) -> None:
    tree = blend(references).propose(context, 16)
    for node, (token, parent) in enumerate(zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True)):
        before = context[-1] if parent == ROOT else int(tree.tokens[parent])
        source = int(tree.sources[node])
        text = references[source] if source >= 0 else context
        assert (before, token) in itertools.pairwise(text)


def test_sources_point_to_the_reference_whose_text_holds_the_token() -> None:
    drafter = blend([(7, 8, 9), (), (1, 2, 3, 4), (1, 2, 5, 6)])
    tree = drafter.propose((0, 1, 2), 8)
    of_token = dict(zip(tree.tokens.tolist(), tree.sources.tolist(), strict=True))
    assert {token: of_token[token] for token in (3, 4, 5, 6)} == {3: 2, 4: 2, 5: 3, 6: 3}


# Learning


def test_an_answer_given_twice_is_accepted_faster_the_second_time() -> None:
    answer = tuple(range(200, 240))
    drafter = blend()
    first = steps(drafter, answer)
    drafter.start(request([]))
    second = steps(drafter, answer)
    assert first == len(answer) - 1  # nothing to copy from
    assert second <= first // 2


def test_answers_given_at_the_start_are_drafted_from_at_once() -> None:
    answer = tuple(range(200, 240))
    assert steps(blend(answers=[answer]), answer) <= len(answer) // 2


def test_reset_forgets_answers_but_not_those_given_at_the_start() -> None:
    old, new = tuple(range(200, 240)), tuple(range(300, 340))
    drafter = blend(answers=[old])
    steps(drafter, new)
    drafter.start(request([PASSAGE]))
    drafter.reset()
    drafter.start(request([]))
    assert steps(drafter, new) == len(new) - 1
    drafter.reset()
    drafter.start(request([]))
    assert steps(drafter, old) <= len(old) // 2


def test_reset_while_an_answer_is_written_forgets_it_and_its_references() -> None:
    drafter = blend([PASSAGE])
    drafter.propose(PASSAGE[:5], 8)
    drafter.reset()
    assert len(drafter.propose(PASSAGE[:3], 8)) == 0


def test_only_the_newest_answers_are_remembered() -> None:
    drafter = blend()
    oldest = tuple(range(200, 240))
    steps(drafter, oldest)
    for other in range(REMEMBERED_ANSWERS):
        drafter.start(request([]))
        drafter.propose((other, 70 + other), 4)
    drafter.start(request([]))
    assert steps(drafter, oldest) == len(oldest) - 1


def test_n_grams_of_other_passages_are_drafted() -> None:
    passages = count_ngrams([range(200, 240)] * 9, len(TABLE))
    drafter = BlendDrafter(TABLE, passages)
    drafter.start(request([]))
    assert 204 in drafter.propose((200, 201, 202, 203), 8).tokens.tolist()


def test_n_grams_of_another_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match="tokens"):
        BlendDrafter(TABLE, count_ngrams([[0, 1]], len(TABLE) + 1))


def test_a_search_that_broke_off_spoils_no_later_answer() -> None:
    drafter = blend([PASSAGE])
    drafter._slots[:] = 10**6
    drafter.start(request([PASSAGE]))
    assert drafter.propose(PASSAGE[:5], 8).tokens[0] == PASSAGE[5]


def test_expectations_fall_with_refusals_rise_with_acceptance_and_stay_within_bounds() -> None:
    drafter = blend([PASSAGE])
    context = (100, 101)
    before = drafter.propose(context, 4)
    for _ in range(200):
        drafter.observe(Observation(before, (), (9,)))
    refused = drafter.propose(context, 4)
    for _ in range(400):
        drafter.observe(Observation(before, (0, 1, 2, 3), (102, 103, 104, 105, 9)))
    accepted = drafter.propose(context, 4)
    probs = [float(tree.probs[0]) for tree in (refused, before, accepted)]
    assert probs == sorted(probs)
    assert 0.05 < probs[0] < probs[1] < probs[2] < 1


def test_an_empty_draft_teaches_nothing() -> None:
    drafter = blend([PASSAGE])
    before = drafter.propose((100, 101), 4).probs.tolist()
    drafter.observe(Observation(make_tree([], []), (), (5,)))
    assert drafter.propose((100, 101), 4).probs.tolist() == before


# Hostile input


def test_ids_outside_the_vocabulary_are_neither_drafted_nor_fatal() -> None:
    drafter = blend([(1, 2, 600, 3), (-5, 1, 2, 4), (1 << 40, 1)], answers=[(1, 700, 2), (-3,)])
    tree = drafter.propose((1, 999, -7, 1, 2), 16)
    assert set(tree.tokens.tolist()) <= set(range(500))
    assert {3, 4} <= set(tree.tokens.tolist())


@pytest.mark.parametrize("references", [[], [()], [(), ()], [(1,)]])
def test_empty_references_give_empty_drafts(references: list[tuple[int, ...]]) -> None:
    drafter = blend(references)
    assert len(drafter.propose((1,), 8)) == 0
    assert len(drafter.propose((1, 2), 8)) == 0


@pytest.mark.parametrize("max_nodes", [0, -1])
def test_no_nodes_are_drafted_where_none_are_asked_for(max_nodes: int) -> None:
    assert len(blend([PASSAGE]).propose((100, 101), max_nodes)) == 0


def test_answers_longer_than_the_room_laid_out_for_them_go_on() -> None:
    drafter = blend([PASSAGE])
    context = [index % 90 for index in range(1500)]
    for end in (1000, 1100, 1499):
        drafter.propose(tuple(context[:end]), 1)
    tree = drafter.propose((*context, 100, 101, 102), 4)
    assert best_path(tree) == [103, 104, 105, 106]
    assert tree.probs.tolist() == blend([PASSAGE]).propose((*context, 100, 101, 102), 4).probs.tolist()


def test_a_file_without_a_scorer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="holds no fitted scorer"):
        BlendDrafter(TABLE, scorer=tmp_path / "none.json")
