"""The token table: kinds of tokens, and spellings of one word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from decoding.blend.token_table import (
    CAPITAL,
    DIGIT,
    KINDS,
    NAME,
    PIECE,
    PUNCTUATION,
    SPACE,
    UNKNOWN,
    UNKNOWN_VOCABULARY,
    WORD,
    TokenTable,
    plain_table,
    read_table,
)


class Spelled:
    """A tokenizer of which only the spelling of each token is known."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def batch_decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(self.tokens[token] for token in one) for one in ids]


def table_of(*tokens: str, padded: int = 0) -> TokenTable:
    return read_table(Spelled(*tokens), len(tokens) + padded)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (" the", WORD), (" The", NAME), ("the", PIECE), ("The", CAPITAL), ("7", DIGIT), (" 7", DIGIT),
        (",", PUNCTUATION), (" (", PUNCTUATION), ("�", PUNCTUATION), ("", SPACE), (" ", SPACE),
        ("\n\n", SPACE), ("\n the", PIECE),
        (" éa", WORD), ("語", PIECE),
    ],
)  # fmt: skip
def test_a_token_s_kind_follows_from_its_spelling(text: str, kind: int) -> None:
    assert table_of(text).kinds.tolist() == [kind]


def test_spellings_of_a_word_fold_to_the_first_of_them() -> None:
    assert table_of("a", "The", " the", " The", "the", " then").folded.tolist() == [0, 1, 1, 1, 1, 5]


def test_tokens_of_space_alone_stay_apart() -> None:
    assert table_of(" ", "\n", "  ", "\n").folded.tolist() == [0, 1, 2, 1]


def test_a_form_is_its_own_form_and_no_later_token() -> None:
    table = table_of(" B", "b", "a", "B", " a", "", "A")
    assert (table.folded <= np.arange(len(table))).all()
    assert (table.folded[table.folded] == table.folded).all()


def test_tokens_of_the_model_beyond_the_tokenizer_are_themselves() -> None:
    table = table_of("the", " the", padded=2)
    assert (table.kinds.tolist(), table.folded.tolist()) == ([PIECE, WORD, UNKNOWN, UNKNOWN], [0, 0, 2, 3])


def test_tokens_of_the_tokenizer_beyond_the_model_are_left_out() -> None:
    table = read_table(Spelled("a", "b", "A"), 2)
    assert (len(table), table.folded.tolist()) == (2, [0, 1])


def test_without_a_tokenizer_every_token_is_itself() -> None:
    assert plain_table(3).folded.tolist() == [0, 1, 2]
    assert plain_table(3).kinds.tolist() == [UNKNOWN] * 3
    assert len(plain_table()) == UNKNOWN_VOCABULARY


def test_kinds_are_all_different_and_fit_the_features() -> None:
    kinds = (WORD, NAME, PIECE, DIGIT, PUNCTUATION, SPACE, CAPITAL, UNKNOWN)
    assert sorted(kinds) == list(range(KINDS))
