from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from decoding.tokenizer_hash import tokenizer_hash

VOCABULARY = {"<unk>": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "bc": 5}


def tokenizer(vocabulary: dict[str, int] = VOCABULARY, merges: list[tuple[str, str]] | None = None) -> Any:
    model = models.BPE(vocabulary, [("a", "b"), ("b", "c")] if merges is None else merges, unk_token="<unk>")
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model), unk_token="<unk>")


def test_the_same_tokenizer_has_the_same_hash() -> None:
    assert tokenizer_hash(tokenizer()) == tokenizer_hash(tokenizer())
    assert len(tokenizer_hash(tokenizer())) == 64


@pytest.mark.parametrize(
    "other",
    [
        tokenizer(VOCABULARY | {"d": 6}),
        tokenizer({"<unk>": 0, "b": 1, "a": 2, "c": 3, "ab": 4, "bc": 5}),
        tokenizer(merges=[("b", "c"), ("a", "b")]),
        tokenizer(merges=[("a", "b")]),
    ],
    ids=["one more", "two swapped", "merges swapped", "a merge less"],
)
def test_another_vocabulary_or_other_merges_have_another_hash(other: Any) -> None:
    assert tokenizer_hash(other) != tokenizer_hash(tokenizer())


def test_an_added_token_or_another_rule_gives_another_hash() -> None:
    added, split = tokenizer(), tokenizer()
    added.add_tokens(["<|new|>"])
    split.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    assert len({tokenizer_hash(each) for each in (added, split, tokenizer())}) == 3


def test_how_it_was_called_last_does_not_matter() -> None:
    used = tokenizer()
    used.pad_token = "<unk>"
    used(["a", "abc"], padding=True, truncation=True, max_length=2)
    assert tokenizer_hash(used) == tokenizer_hash(tokenizer())


def test_a_tokenizer_without_a_backend_is_named_by_its_vocabulary() -> None:
    class Words:
        def __init__(self, *words: str) -> None:
            self._words = words

        def get_vocab(self) -> dict[str, int]:
            return {word: at for at, word in enumerate(self._words)}

    assert tokenizer_hash(Words("a", "b")) == tokenizer_hash(Words("a", "b"))
    assert tokenizer_hash(Words("a", "b")) != tokenizer_hash(Words("b", "a"))
