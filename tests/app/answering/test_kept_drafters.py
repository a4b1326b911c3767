"""What drafters learn from one answer serves the same person's next one, and nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.answering.kept_drafters import MOST_COUNTED, KeptDrafters, count_passages
from app.documents.indexing import index_files
from app.setup.settings import Paths, Settings
from decoding.drafter import Drafter
from decoding.drafters import make_drafter
from indexes.errors import PromptTooLongError
from indexes.passages import Chunk, Document
from tests.app.tiny_models import write_bge_m3, write_cross_encoder, write_llama
from tests.indexes.small import passage_store

NOTES, OTHER = Path("notes"), Path("other")


@pytest.fixture
def kept() -> KeptDrafters:
    return KeptDrafters(lambda name, _: make_drafter(name), most=2)


def given_back(kept: KeptDrafters, person: str | None, folder: Path = NOTES, name: str = "blend") -> Drafter:
    drafter = kept.take(person, folder, name)
    kept.put_back(person, folder, name, drafter)
    return drafter


def test_a_person_gets_the_same_drafter_again_for_the_same_index_only(kept: KeptDrafters) -> None:
    first = given_back(kept, "ada")
    assert kept.take("ada", NOTES, "blend") is first
    assert given_back(kept, "ada", OTHER) is not first
    assert given_back(kept, "bob") is not first


def test_a_drafter_in_use_is_not_given_twice(kept: KeptDrafters) -> None:
    given_back(kept, "ada")
    assert kept.take("ada", NOTES, "blend") is not kept.take("ada", NOTES, "blend")


@pytest.mark.parametrize(("person", "name"), [(None, "blend"), ("", "blend"), ("ada", "trie"), ("ada", "plain")])
def test_nobody_s_drafters_and_those_that_learn_nothing_are_not_kept(
    kept: KeptDrafters, person: str | None, name: str
) -> None:
    assert given_back(kept, person, name=name) is not given_back(kept, person, name=name)


def test_what_was_used_least_recently_goes_and_what_a_person_who_left_taught(kept: KeptDrafters) -> None:
    ada, bob = given_back(kept, "ada"), given_back(kept, "bob")
    assert given_back(kept, "ada") is ada
    given_back(kept, "eve")
    assert given_back(kept, "bob") is not bob
    eve = given_back(kept, "eve")
    kept.forget("bob")
    assert given_back(kept, "eve") is eve
    kept.forget("eve")
    assert given_back(kept, "eve") is not eve


def test_what_is_put_back_after_its_person_has_left_is_not_kept(kept: KeptDrafters) -> None:
    drafter = kept.take("ada", NOTES, "blend")
    kept.forget("ada")
    kept.put_back("ada", NOTES, "blend", drafter)
    assert kept.take("ada", NOTES, "blend") is not drafter


def test_all_passages_are_counted_and_of_a_large_index_some_from_everywhere(tmp_path: Path) -> None:
    texts = [f"{chr(97 + number % 26)}  {number}" for number in range(MOST_COUNTED + 1)]
    documents = [(Document(text, text, text, ""), [Chunk(0, text)]) for text in texts]
    seen: list[str] = []

    def encode(text: str) -> list[int]:
        seen.append(text)
        return [ord(character) for character in text]

    for name, count in (("small", 3), ("large", MOST_COUNTED + 1)):
        counted = count_passages(passage_store(tmp_path / name, *documents[:count]), encode, 256)
        assert counted.unigram[ord("a")] > counted.unigram[ord("#")]
    assert seen[:3] == ["a 0", "b 1", "c 2"]
    assert seen[3:] == [text.replace("  ", " ") for text in texts[::2]]


def test_the_engine_keeps_one_drafter_per_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choices: dict[str, Any] = {"profile": "gpu", "device": "cpu", "max_new_tokens": 8}
    for name, write in (("model", write_llama), ("encoder", write_bge_m3), ("reranker", write_cross_encoder)):
        choices[name] = str(tmp_path / name)
        write(tmp_path / name)
    settings = Settings(**choices)
    engine = Engine(settings, home=Paths(tmp_path / "data", tmp_path / "cache"))
    (tmp_path / "notes.txt").write_text("the lambda is a function.\n\n" * 20)
    folder = engine.paths.indexes / "notes"
    index_files(engine, folder, [tmp_path / "notes.txt"])
    made: list[str] = []

    def counted(name: str, _: Path) -> Drafter:
        made.append(name)
        return make_drafter(name)

    monkeypatch.setattr(engine._drafters, "_make", counted)
    people = ["ada", "ada", "bob", None, None]
    texts = [list(engine.ask("what is lambda?", folder, person=person))[-1].text for person in people]
    assert made == ["blend"] * 4
    next(answers := engine.ask("what is lambda?", folder, person="ada"))
    answers.close()  # type: ignore[attr-defined]
    with pytest.raises(PromptTooLongError):
        list(engine.ask("what " * 10_000, folder, person="ada"))
    texts += [list(engine.ask("what is lambda?", folder, person="ada"))[-1].text]
    assert made == ["blend"] * 4
    engine.forget("ada")
    texts += [list(engine.ask("what is lambda?", folder, person=person))[-1].text for person in ("ada", "bob")]
    assert made == ["blend"] * 5
    assert set(texts) == {list(engine.ask("what is lambda?", folder, options=AnswerOptions("plain")))[-1].text}
