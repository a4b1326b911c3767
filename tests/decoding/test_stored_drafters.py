"""REST and CREST as drafters: what they take from a datastore, and that no datastore changes a token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decoding.drafter import Drafter
from decoding.drafters import DRAFTERS, Resources, check_drafter, make_drafter
from decoding.drafters.crest import CrestDrafter
from decoding.drafters.rest import RestDrafter
from decoding.loop import DecodeRequest
from indexes.crest import BUCKETS, RECORDS
from indexes.crest_build import CrestSettings, build_crest
from indexes.errors import IndexStoreError, SettingError
from indexes.files import current_generation
from indexes.suffix_array import ORDER, TEXT, build_rest
from tests.decoding.tiny import ANSWER, ARCHITECTURES, VOCABULARY, copied_request, emitted, events, plain_answer
from tests.indexes.stores import crest, forge, rest

HASH = "a tokenizer"
FILES = {"crest": (BUCKETS, RECORDS), "rest": (TEXT, ORDER)}
BUILD: dict[str, Any] = {"crest": build_crest, "rest": build_rest}
TEXTS = [[1, 2, 3, 4], [1, 2, 3, 5], [0, 2, 0]]

every_kind = pytest.mark.parametrize("kind", ["crest", "rest"])


def drafter_of(kind: str, folder: Path, *texts: tuple[int, ...]) -> Drafter:
    BUILD[kind](folder, texts, HASH, VOCABULARY)
    return make_drafter(kind, Resources(HASH, folder))


@every_kind
@pytest.mark.parametrize(("nodes", "tokens"), [(0, []), (1, [3]), (2, [3, 4]), (9, [3, 4, 5])])
def test_the_likeliest_nodes_of_the_stored_tree_are_drafted(
    tmp_path: Path, kind: str, nodes: int, tokens: list[int]
) -> None:
    drafter: Drafter = CrestDrafter(crest(tmp_path / "s", TEXTS)) if kind == "crest" else RestDrafter(
        rest(tmp_path / "s", TEXTS)
    )  # fmt: skip
    tree = drafter.propose((0, 1, 2), nodes)
    assert tree.tokens.tolist() == tokens
    assert tree.sources.tolist() == [-1] * len(tokens)


@every_kind
def test_an_answer_that_stands_in_the_datastore_takes_few_passes(tmp_path: Path, kind: str) -> None:
    for name in ("llama", "gpt2"):
        drafter = drafter_of(kind, tmp_path / "s", plain_answer(name))
        steps, _ = events(name, drafter, DecodeRequest(copied_request(name), ANSWER))
        assert sum(step.accepted for step in steps) >= ANSWER / 2
        assert tuple(token for step in steps for token in step.tokens) == plain_answer(name)


def test_a_tree_can_be_grown_past_what_is_stored(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2, 3, 4, 5], [2, 0]], CrestSettings(max_ngram=2, depth=1))
    assert CrestDrafter(store, grow=False).propose((1,), 9).tokens.tolist() == [2]
    assert CrestDrafter(store).propose((1,), 9).tokens.tolist() == [2, 3, 4, 5]  # trees of one level are grown
    # after 1: 2; after 1 2: 3 (after 2 alone: 3 or 0); then 4, then 5, which nothing follows
    grown = CrestDrafter(store, grow=True)
    assert (grown.propose((1,), 9).tokens.tolist(), grown.propose((1,), 2).tokens.tolist()) == ([2, 3, 4, 5], [2, 3])
    assert CrestDrafter(store, grow=True, depth=2).propose((1,), 9).tokens.tolist() == [2, 3]


def test_grown_probabilities_are_products(tmp_path: Path) -> None:
    store = crest(tmp_path / "s", [[1, 2], [1, 3], [2, 4], [2, 5]], CrestSettings(max_ngram=1, depth=1))
    tree = CrestDrafter(store, grow=True).propose((1,), 9)
    # 1 is followed by 2 or 3, 2 by 4 or 5
    assert tree.tokens.tolist() == [2, 4, 5, 3]
    assert tree.probs.tolist() == [0.5, 0.25, 0.25, 0.5]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_grown_tree_gives_the_tokens_of_plain_decoding(tmp_path: Path, name: str) -> None:
    build_crest(tmp_path / "s", [plain_answer(name), plain_answer(name, 1)], HASH, VOCABULARY)
    stored = make_drafter("crest", Resources(HASH, tmp_path / "s"))
    assert isinstance(stored, CrestDrafter)
    tokens, end = emitted(name, replace(stored, grow=True), DecodeRequest(copied_request(name), ANSWER))
    assert (tokens, end.drafter_error) == (plain_answer(name), None)


@every_kind
def test_a_hostile_datastore_is_switched_off_by_name_and_changes_no_token(tmp_path: Path, kind: str) -> None:
    drafter_of(kind, tmp_path / "s", plain_answer("llama"))
    generation = current_generation(tmp_path / "s")[0]
    forge(tmp_path / "s", {name: b"\xff" * len((generation / name).read_bytes()) for name in FILES[kind]})
    drafter = make_drafter(kind, Resources(HASH, tmp_path / "s"))
    tokens, end = emitted("llama", drafter, DecodeRequest(copied_request("llama"), ANSWER))
    assert tokens == plain_answer("llama")
    assert end.drafter_error is not None
    assert "DamagedIndexError: the datastore 's' is damaged" in end.drafter_error


@every_kind
def test_another_tokenizer_s_datastore_is_refused_before_anything_is_drafted(tmp_path: Path, kind: str) -> None:
    drafter_of(kind, tmp_path / "s", (1, 2, 3))
    with pytest.raises(IndexStoreError, match=r"another tokenizer .* build it again with this model"):
        make_drafter(kind, Resources("another", tmp_path / "s"))


@every_kind
def test_without_a_datastore_the_error_names_the_command_that_builds_one(kind: str) -> None:
    for make in (make_drafter, check_drafter):
        with pytest.raises(SettingError, match=rf"python app\.py datastore build PATH.* --kind {kind}.*--datastore"):
            make(kind)


def test_an_unknown_drafter_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(SettingError, match=f"unknown drafter 'x'; choose one of {', '.join(DRAFTERS)}"):
        check_drafter("x")
