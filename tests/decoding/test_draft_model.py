"""The draft model around a real (tiny) model, its vocabulary, and the drafter that asks it token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.causal_draft_model import READ_ROWS, CausalDraftModel
from decoding.draft_model import check_same_vocabulary
from decoding.drafters.draft_model import DraftModelDrafter
from decoding.hf_target import HuggingFaceTarget
from decoding.target import TargetModel
from decoding.tree import EMPTY, DraftTree, chain, make_tree
from indexes.errors import PromptTooLongError, SettingError
from tests.decoding.drafting import started
from tests.decoding.scripted import RuledDraftModel, paths
from tests.decoding.tiny import ARCHITECTURES, CONTEXT, GQA, VOCABULARY, prompt_tokens, tiny_model, tiny_target

TREE = make_tree([3, 4, 5, 6], [-1, 0, -1, 1])


def fresh_choices(target: TargetModel, text: Sequence[int], tree: DraftTree) -> list[int]:
    """The greedy token after the text and after each node, each path read from the beginning."""
    return [int(target.prefill([*text, *path]).argmax()) for path in [(), *paths(tree)]]


# A causal model as draft model


@pytest.fixture(scope="module")
def reader() -> HuggingFaceTarget:
    return HuggingFaceTarget(tiny_model(*ARCHITECTURES["llama"]))


@pytest.mark.parametrize("name", ["llama", "qwen2, one layer sliding", "gpt2"])
def test_choices_are_those_of_reading_each_path_from_the_beginning(name: str) -> None:
    model = CausalDraftModel(HuggingFaceTarget(tiny_model(*ARCHITECTURES[name])))
    text = list(prompt_tokens(1))
    for after in ([], [3], [3, 4, 9], [3, 4, 9, 7, 7]):  # grows along the tree that was tried, then leaves it
        assert model.choices([*text, *after], TREE) == fresh_choices(tiny_target(name), [*text, *after], TREE)


TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@settings(max_examples=40)
@given(texts=st.lists(st.tuples(TEXTS, st.sampled_from([EMPTY, TREE, chain([1, 2, 0])])), min_size=1, max_size=5))
def test_whatever_was_read_before_the_choices_are_those_of_a_fresh_model(
    reader: HuggingFaceTarget, texts: list[tuple[list[int], DraftTree]]
) -> None:
    model = CausalDraftModel(reader)
    model.reset()
    found = [model.choices(text, tree) for text, tree in texts]
    assert found == [fresh_choices(tiny_target("llama"), text, tree) for text, tree in texts]


@dataclass
class CountingTarget:
    """Passes everything on to a target, and notes how many tokens each forward pass read."""

    inner: HuggingFaceTarget
    rows: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def prefill(self, tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        self.rows.append(len(tokens))
        return self.inner.prefill(tokens, cached)

    def forward(self, last: int, tree: DraftTree) -> torch.Tensor:
        self.rows.append(1 + len(tree))
        return self.inner.forward(last, tree)


def test_what_was_tried_and_taken_over_is_not_read_again(reader: HuggingFaceTarget) -> None:
    target: Any = CountingTarget(reader)
    model = CausalDraftModel(target)
    text = list(prompt_tokens(1, 20))
    model.choices(text, TREE)  # the prompt but its last token, then that and 4 nodes
    model.choices([*text, 3, 4, 9], EMPTY)  # 3 and 4 were tried: 9 is left
    model.choices([*text, 3, 8], EMPTY)  # back to the 3: 8 is left
    model.choices([*text[:15], 1, 2], EMPTY)  # another text after 15 tokens
    assert target.rows == [19, 5, 1, 1, 2]


def test_long_new_text_after_a_known_beginning_is_read_in_pieces() -> None:
    long = GQA | {"max_position_embeddings": 400}
    target: Any = CountingTarget(HuggingFaceTarget(tiny_model("llama", long)))
    model = CausalDraftModel(target)
    text = list(prompt_tokens(1, 10))
    model.choices(text, EMPTY)
    more = [*text, *prompt_tokens(2, 150)]
    assert model.choices(more, EMPTY) == [int(HuggingFaceTarget(tiny_model("llama", long)).prefill(more).argmax())]
    assert target.rows == [9, 1, READ_ROWS, READ_ROWS, 150 - 2 * READ_ROWS]


def test_the_next_tokens_come_likeliest_first_with_their_probabilities(reader: HuggingFaceTarget) -> None:
    text = prompt_tokens(3)
    tokens, probs = CausalDraftModel(reader).next_tokens(text, 5)
    expected = tiny_target("llama").prefill(text).float().softmax(-1)
    assert tokens == expected.topk(5).indices.tolist()
    assert probs == pytest.approx(expected[tokens].tolist(), abs=1e-6)


@pytest.mark.parametrize("text", [(VOCABULARY,), (-1,), (1, 2**40, 3)])
def test_an_id_outside_the_vocabulary_is_refused_before_the_model_reads_it(
    reader: HuggingFaceTarget, text: tuple[int, ...]
) -> None:
    with pytest.raises(SettingError, match="outside the draft model's vocabulary of 64"):
        CausalDraftModel(reader).choices(text, EMPTY)


def test_a_text_beyond_the_context_is_refused(reader: HuggingFaceTarget) -> None:
    model = CausalDraftModel(reader)
    assert len(model.choices([1] * CONTEXT, EMPTY)) == 1
    for text, tree in (([1] * (CONTEXT + 1), EMPTY), ([1] * CONTEXT, chain([1])), ([], EMPTY)):
        with pytest.raises(PromptTooLongError, match=f"reads 1 to {CONTEXT}"):
            model.choices(text, tree)


# The vocabulary


@dataclass
class Words:
    """As much of a tokenizer as says what its ids mean."""

    tokens: dict[str, int]
    added: dict[str, int] = field(default_factory=dict)

    def get_vocab(self) -> dict[str, int]:
        return self.tokens | self.added

    def get_added_vocab(self) -> dict[str, int]:
        return self.added


BASE = {"a": 0, "b": 1, "c": 2}


def test_equal_vocabularies_pass_as_do_special_tokens_that_one_of_them_has() -> None:
    check_same_vocabulary("large", Words(BASE), "small", Words(dict(BASE)))
    check_same_vocabulary("large", Words(BASE, {"<end>": 3, "<think>": 4}), "small", Words(BASE, {"<end>": 3}))


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (Words({"a": 0, "b": 2, "c": 1}), ["id 1 is 'b' and 'c'"]),  # as many tokens, but others
        (Words({"a": 0, "b": 1}), ["small", "2 tokens", "large", "3 tokens", "--draft-model"]),
        (Words({**BASE, "d": 3}), ["4 tokens"]),
        (Words(BASE, {"<x>": 3}), ["id 3 is '<end>' and '<x>'"]),
    ],
)
def test_another_vocabulary_is_refused_by_name(draft: Words, words: list[str]) -> None:
    with pytest.raises(SettingError) as caught:
        check_same_vocabulary("large", Words(BASE, {"<end>": 3} if draft.added else {}), "small", draft)
    assert [word for word in words if word not in str(caught.value)] == []


# The drafter


def test_the_draft_is_the_small_model_s_greedy_chain_of_gamma_tokens() -> None:
    tree = started(DraftModelDrafter(RuledDraftModel(), gamma=3), [], (1, 2)).propose((5,), 16)
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([6, 7, 8], [-1, 0, 1])
    assert tree.probs.tolist() == [0.5, 0.25, 0.125]


def test_with_width_the_next_likeliest_tokens_hang_beside_the_chain_likeliest_first() -> None:
    tree = started(DraftModelDrafter(RuledDraftModel(), gamma=2, width=3), [], (1, 2)).propose((5,), 5)
    # chain 6 7; beside 6 stand 7 (.25) and 8 (.125), beside 7 stand 8 (.5 * .25) and 9; there is room for three
    assert (tree.tokens.tolist(), tree.parents.tolist()) == ([6, 7, 7, 8, 8], [-1, 0, -1, -1, 0])
    assert tree.probs.tolist() == [0.5, 0.25, 0.25, 0.125, 0.125]


def test_no_pass_of_the_small_model_is_spent_on_what_may_not_be_drafted() -> None:
    model = RuledDraftModel()
    drafter = started(DraftModelDrafter(model), [], (1, 2))
    assert [len(drafter.propose((5,), most)) for most in (0, 2, 99)] == [0, 2, 5]
    assert len(model.texts) == 7


def test_a_text_longer_than_the_small_model_reads_gets_no_draft() -> None:
    drafter = started(DraftModelDrafter(RuledDraftModel(context_limit=6)), [], (1, 2, 3))
    assert [len(drafter.propose(range(5, 5 + length), 16)) for length in (1, 2, 3, 4)] == [3, 2, 1, 0]


def test_the_small_model_hears_the_prompt_and_then_the_answer() -> None:
    model = RuledDraftModel()
    started(DraftModelDrafter(model, gamma=2), [], (1, 2)).propose((5,), 16)
    assert model.texts == [(1, 2, 5), (1, 2, 5, 6)]


@pytest.mark.parametrize(("name", "value"), [("gamma", 0), ("width", 0)])
def test_settings_that_cannot_be_are_named(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} is {value}; it must be at least 1"):
        DraftModelDrafter(RuledDraftModel(), **cast(Any, {name: value}))
