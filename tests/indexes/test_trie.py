"""The lazy trie against the paper's construction, done step by step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.trie import Candidate, NgramTrie

SIZES = st.integers(1, 4).flatmap(lambda prefix: st.tuples(st.integers(prefix + 1, prefix + 6), st.just(prefix)))
REFERENCES = st.lists(st.lists(st.integers(0, 3), max_size=24), max_size=4)
CONTEXT = st.lists(st.integers(0, 4), max_size=6)


@dataclass
class Node:
    """A node of the eager trie: how often it was inserted, and where its string first began."""

    frequency: int = 0
    first: int = -1
    children: dict[int, Node] = field(default_factory=dict)


def eager_trie(references: Sequence[Sequence[int]], n: int, prefix_length: int) -> Node:
    """Section 3.1: slide a window of n tokens; insert every sub-prefix followed by the suffix."""
    root, offset = Node(), 0
    for reference in references:
        for start in range(len(reference)):
            window = reference[start : start + n]
            prefix, suffix = window[:prefix_length], window[prefix_length:]
            for skipped in range(len(prefix)):
                insert(root, [*prefix[skipped:], *suffix], offset + start + skipped)
        offset += len(reference)
    return root


def insert(node: Node, tokens: Sequence[int], begin: int) -> None:
    for token in tokens:
        node = node.children.setdefault(token, Node())
        node.frequency += 1
        node.first = begin if node.first < 0 else min(node.first, begin)


def eager_candidates(
    references: Sequence[Sequence[int]], n: int, prefix_length: int, context: Sequence[int], max_nodes: int
) -> list[Candidate]:
    """Section 3.2: the best nodes below the match of the last prefix_length tokens, else of ever fewer."""
    owners = [owner for owner, reference in enumerate(references) for _ in reference]
    root = eager_trie(references, n, prefix_length)
    for length in range(min(prefix_length, len(context)), 0, -1):
        node: Node | None = root
        for token in context[len(context) - length :]:
            node = node.children.get(token) if node else None
        if node is None or not node.children:
            continue
        below: list[tuple[int, int, int, tuple[int, ...]]] = []
        collect(node, (), below)
        kept = [path for *_, path in sorted(below)[:max_nodes]]
        found = []
        for path in kept:
            end = node
            for token in path:
                end = end.children[token]
            parent = kept.index(path[:-1]) if path[:-1] else -1
            found.append(Candidate(path[-1], parent, end.frequency / node.frequency, owners[end.first]))
        if found:
            return found
    return []


def collect(node: Node, path: tuple[int, ...], found: list[tuple[int, int, int, tuple[int, ...]]]) -> None:
    for token, child in node.children.items():
        found.append((-child.frequency, len(path) + 1, child.first, (*path, token)))
        collect(child, (*path, token), found)


def tokens_and_parents(found: list[Candidate]) -> list[tuple[int, int]]:
    return [(node.token, node.parent) for node in found]


def test_a_short_reference_counts_as_worked_by_hand() -> None:
    # n = 3, L_p = 2, reference 1 2 1 3. Windows: 1 2 1 | 2 1 3 | 1 3 | 3.
    # Inserted: 121, 21 | 213, 13 | 13, 3 | 3. Below "1" (121, 13, 13: three times): 3 twice, 2 once, 2 1 once.
    assert NgramTrie([[1, 2, 1, 3]], n=3, prefix_length=2).candidates([1], 8) == [
        Candidate(token=3, parent=-1, prob=2 / 3, source=0),
        Candidate(token=2, parent=-1, prob=1 / 3, source=0),
        Candidate(token=1, parent=1, prob=1 / 3, source=0),
    ]


def test_the_longest_match_of_the_last_prefix_length_tokens_is_used() -> None:
    # "2 1" stands once, and 3 follows; "1" alone would also be followed by 2
    assert tokens_and_parents(NgramTrie([[1, 2, 1, 3]], 3, 2).candidates([9, 2, 1], 8)) == [(3, -1)]


def test_on_failure_the_oldest_token_is_dropped() -> None:
    assert tokens_and_parents(NgramTrie([[1, 2, 1, 3]], 3, 2).candidates([9, 1], 1)) == [(3, -1)]


def test_a_match_that_nothing_follows_is_a_failure() -> None:
    # "4 2" stands only at the end of the second reference
    assert tokens_and_parents(NgramTrie([[1, 2, 3], [4, 2]], 4, 2).candidates([4, 2], 8)) == [(3, -1)]


def test_what_follows_reaches_n_tokens_from_the_start_of_the_match_and_no_further() -> None:
    trie = NgramTrie([list(range(10))], n=5, prefix_length=2)
    assert tokens_and_parents(trie.candidates([3], 9)) == [(4, -1), (5, 0), (6, 1), (7, 2)]
    assert tokens_and_parents(trie.candidates([2, 3], 9)) == [(4, -1), (5, 0), (6, 1)]


def test_windows_never_cross_into_the_next_reference() -> None:
    assert tokens_and_parents(NgramTrie([[1, 2], [3, 4]], 4, 2).candidates([1], 8)) == [(2, -1)]


def test_ties_go_to_the_shallower_node_and_then_to_the_first_in_the_references() -> None:
    # Below 1: 5 and 4 once each, both begun at a reference's start, and 6 after the 5
    trie = NgramTrie([[1, 5, 6], [1, 4]], 4, 2)
    assert [(node.token, node.source) for node in trie.candidates([1], 3)] == [(5, 0), (4, 1), (6, 0)]


def test_a_token_that_stands_nowhere_has_no_candidates() -> None:
    assert NgramTrie([[1, 2, 3]]).candidates([7], 8) == []


@pytest.mark.parametrize("references", [[], [[]], [[], []]])
def test_no_references_have_no_candidates(references: list[list[int]]) -> None:
    assert NgramTrie(references).candidates([1], 8) == []


def test_an_empty_context_has_no_candidates() -> None:
    assert NgramTrie([[1, 2, 3]]).candidates([], 8) == []


def test_defaults_are_the_papers_best() -> None:
    trie = NgramTrie([])
    assert (trie.n, trie.prefix_length) == (13, 3)


def test_by_default_ten_tokens_follow_a_match_of_three() -> None:
    assert len(NgramTrie([list(range(30))]).candidates([0, 1, 2], 64)) == 10


@pytest.mark.parametrize(("n", "prefix_length"), [(3, 3), (3, 4), (3, 0), (1, 1)])
def test_a_prefix_length_outside_1_to_n_is_refused_with_the_values(n: int, prefix_length: int) -> None:
    with pytest.raises(ValueError, match=rf"prefix_length is {prefix_length}; .* less than n = {n}"):
        NgramTrie([], n, prefix_length)


@settings(max_examples=300)
@given(REFERENCES, SIZES, CONTEXT, st.integers(0, 20))
def test_candidates_are_those_of_the_eager_construction(
    references: list[list[int]], sizes: tuple[int, int], context: list[int], max_nodes: int
) -> None:
    found = NgramTrie(references, *sizes).candidates(context, max_nodes)
    assert found == eager_candidates(references, *sizes, context, max_nodes)


@given(REFERENCES, SIZES, st.integers(0, 3))
def test_frequencies_of_all_nodes_are_those_of_the_eager_construction(
    references: list[list[int]], sizes: tuple[int, int], token: int
) -> None:
    everything = 10_000
    found = NgramTrie(references, *sizes).candidates([token], everything)
    assert found == eager_candidates(references, *sizes, [token], everything)


@given(REFERENCES, SIZES, CONTEXT, st.integers(0, 20))
def test_parents_come_before_their_children_and_are_at_least_as_likely(
    references: list[list[int]], sizes: tuple[int, int], context: list[int], max_nodes: int
) -> None:
    found = NgramTrie(references, *sizes).candidates(context, max_nodes)
    assert len(found) <= max_nodes
    for index, node in enumerate(found):
        assert node.parent < index
        assert node.prob <= (found[node.parent].prob if node.parent >= 0 else 1)


def test_a_repetitive_reference_takes_milliseconds_a_lookup() -> None:
    trie = NgramTrie([[1, 2] * 5_000])
    start = time.perf_counter()
    assert len(trie.candidates([1, 2, 1], 16)) == 10
    assert time.perf_counter() - start < 2


@given(REFERENCES, st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=4), SIZES, CONTEXT, st.integers(0, 20))
def test_a_text_that_grows_counts_as_one_more_reference_without_a_source(
    references: list[list[int]], chunks: list[list[int]], sizes: tuple[int, int], context: list[int], max_nodes: int
) -> None:
    trie = NgramTrie(references, *sizes)
    for chunk in chunks:
        trie.append(chunk)
        trie.candidates(context, max_nodes)
    grown = [token for chunk in chunks for token in chunk]
    expected = eager_candidates([*references, grown], *sizes, context, max_nodes)
    assert [(node.token, node.parent, node.source) for node in trie.candidates(context, max_nodes)] == [
        (node.token, node.parent, -1 if node.source == len(references) else node.source) for node in expected
    ]


def test_the_newest_token_of_a_growing_text_takes_no_part_in_a_match() -> None:
    trie = NgramTrie([], 4, 2)
    trie.append([1, 2, 1])
    assert trie.candidates([1], 8) == [Candidate(2, -1, 1.0, -1), Candidate(1, 0, 1.0, -1)]
