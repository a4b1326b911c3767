"""The n-gram trie drafter; the trie itself is tested in tests/indexes."""

from decoding.drafters.ngram_trie import NgramTrieDrafter
from tests.decoding.drafting import started


def test_the_trie_drafts_a_tree_with_the_most_frequent_chain_first() -> None:
    # After 1 comes 2 four times (twice followed by 3), and 7 once
    tree = started(NgramTrieDrafter(), [(1, 7), (1, 2), (1, 2, 3), (1, 2, 3), (1, 2)]).propose((1,), 8)
    assert tree.tokens.tolist() == [2, 3, 7]
    assert tree.parents.tolist() == [-1, 0, -1]
    assert tree.probs.tolist() == [4 / 5, 2 / 5, 1 / 5]
    assert tree.sources.tolist() == [1, 2, 0]


def test_the_trie_uses_the_last_prefix_length_tokens_and_drops_the_oldest_on_failure() -> None:
    drafter = started(NgramTrieDrafter(), [(1, 2, 3, 4), (9, 2, 3, 5), (3, 6)])
    assert drafter.propose((1, 2, 3), 8).tokens.tolist() == [4]
    assert drafter.propose((8, 2, 3), 8).tokens.tolist() == [4, 5]
    assert drafter.propose((8, 8, 3), 8).tokens.tolist() == [4, 5, 6]


def test_the_trie_defaults_are_the_papers_best() -> None:
    drafter = NgramTrieDrafter()
    assert (drafter.n, drafter.prefix_length) == (13, 3)


def test_the_answer_so_far_is_copied_from_as_well_and_names_no_source() -> None:
    drafter = started(NgramTrieDrafter(), [(50, 51)])
    tree = drafter.propose((1, 2, 3, 4, 1, 2), 2)
    assert tree.tokens.tolist() == [3, 4]
    assert tree.sources.tolist() == [-1, -1]


def test_the_end_of_the_answer_does_not_find_itself() -> None:
    drafter = started(NgramTrieDrafter(), [(50, 51)])
    assert len(drafter.propose((1, 2, 3), 8)) == 0


def test_the_answer_is_read_once_however_often_a_draft_is_asked_for() -> None:
    drafter = started(NgramTrieDrafter(), [])
    for length in range(1, 6):
        drafter.propose((7, 8, 7, 9, 7)[:length], 8)
    tree = drafter.propose((7, 8, 7, 9, 7), 8)
    assert sorted(tree.tokens[tree.parents == -1].tolist()) == [8, 9]


def test_without_output_only_the_references_are_copied_from() -> None:
    drafter = started(NgramTrieDrafter(output=False), [(50, 51)])
    assert len(drafter.propose((1, 2, 3, 4, 1, 2), 2)) == 0
