"""Answers to similar questions as references: found, bounded, and never another person's."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.answering.answer_cache import AnswerCache
from app.answering.answers import Answer, Stats
from app.answering.asking import Task
from app.answering.engine import Engine
from app.answering.writing import references
from app.documents.indexing import index_files
from app.setup.settings import Paths, Settings
from decoding.drafter import DraftRequest, Observation, Reference
from decoding.drafters import make_drafter
from decoding.verify import verify
from indexes.passages import Passage
from retrieval.conversation import Turn
from retrieval.finder import Found
from tests.app.tiny_models import write_llama
from tests.hash_encoder import HashEncoder

QUESTION = "what is the lambda function of the language"
SIMILAR = "what is the lambda function of this language"
OTHER = "how are tables joined"


def cache(**bounds: int) -> AnswerCache:
    return AnswerCache(HashEncoder().encode_questions, **bounds)


def encode(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def test_the_answer_to_a_similar_question_is_found_and_that_to_another_is_not() -> None:
    kept = cache()
    kept.add("ann", QUESTION, "a function without a name")
    kept.add("ann", OTHER, "by keys")
    assert kept.similar("ann", SIMILAR) == ["a function without a name"]


def test_the_most_similar_answers_come_first_and_no_more_than_asked_for() -> None:
    kept = cache()
    for number, question in enumerate([SIMILAR, QUESTION, f"{QUESTION} python"]):
        kept.add("ann", question, str(number))
    assert kept.similar("ann", QUESTION)[0] == "1"
    assert len(kept.similar("ann", QUESTION)) == 2
    assert len(kept.similar("ann", QUESTION, count=1)) == 1


def test_nobody_is_given_the_answers_of_another() -> None:
    kept = cache()
    kept.add("ann", QUESTION, "a secret")
    assert kept.similar("bob", QUESTION) == []
    assert kept.similar("", QUESTION) == []


def test_a_new_answer_to_the_same_question_replaces_the_old_one() -> None:
    kept = cache()
    kept.add("ann", QUESTION, "old")
    kept.add("ann", QUESTION, "new")
    assert kept.similar("ann", QUESTION) == ["new"]


def test_the_answer_used_least_recently_goes_first() -> None:
    kept = cache(answers=2)
    kept.add("ann", QUESTION, "used")
    kept.add("ann", OTHER, "not used")
    assert kept.similar("ann", QUESTION) == ["used"]
    kept.add("ann", "which colours has the flag", "blue")
    assert kept.similar("ann", OTHER) == []
    assert kept.similar("ann", QUESTION) == ["used"]


def test_the_namespace_used_least_recently_goes_first() -> None:
    kept = cache(namespaces=2)
    kept.add("ann", QUESTION, "ann's")
    kept.add("bob", QUESTION, "bob's")
    kept.similar("ann", QUESTION)
    kept.add("eve", QUESTION, "eve's")
    assert [kept.similar(name, QUESTION) for name in ("ann", "bob", "eve")] == [["ann's"], [], ["eve's"]]


def test_what_is_forgotten_is_gone_and_the_rest_is_not() -> None:
    kept = cache()
    kept.add("ann", QUESTION, "ann's")
    kept.add("bob", QUESTION, "bob's")
    kept.forget("ann")
    kept.forget("nobody")
    assert [kept.similar(name, QUESTION) for name in ("ann", "bob")] == [[], ["bob's"]]
    kept.reset()
    assert kept.similar("bob", QUESTION) == []


def test_references_stand_in_the_order_passages_question_turns_answers() -> None:
    answer = Answer("q", (Found(Passage(0, "p0", "s", "s", 0, "one  two"), 0.7),), Stats("trie"))
    made = references(encode, answer, Task(answer, turns=[Turn("q1", "a1")]), ["a1", "a2"])
    assert [(one.kind, one.tokens, one.label, one.score) for one in made] == [
        ("document", encode("one two"), "p0", 0.7), ("question", encode("q"), "", 0.0),
        ("turn", encode("a1"), "", 0.0), ("answer", encode("a2"), "", 0.0),
    ]  # fmt: skip


def passes(drafter_name: str, refs: list[Reference], text: str) -> int:
    """Forward passes after the prefill that writing `text` takes, replayed without a model."""
    drafter, answer = make_drafter(drafter_name), encode(text)
    drafter.start(DraftRequest((), tuple(refs)))
    at, count = 1, 0
    while at < len(answer):
        tree = drafter.propose(answer[:at], 8)
        choices = [answer[at]] + [-1] * len(tree)
        node = -1
        for depth in range(1, len(answer) - at):  # what the target says after each node on the answer's way
            below = [
                child
                for child in range(len(tree))
                if tree.parents[child] == node and tree.tokens[child] == answer[at + depth - 1]
            ]
            if not below:
                break
            node = below[0]
            choices[node + 1] = answer[at + depth]
        verified = verify(tree, choices)
        assert verified.tokens == answer[at : at + len(verified.tokens)]
        drafter.observe(Observation(tree, verified.path, verified.tokens))
        at, count = at + len(verified.tokens), count + 1
    return count


@pytest.mark.parametrize("drafter", ["llma", "trie"])
def test_the_cached_answer_to_a_similar_question_saves_passes(drafter: str) -> None:
    kept = cache()
    kept.add("ann", QUESTION, "a lambda is a small function without any name of its own")
    passage = Reference(encode("functions are made by def statements"))
    text = "a lambda is a small function without any name whatever"
    similar = [Reference(encode(answer), "answer") for answer in kept.similar("ann", SIMILAR)]
    assert passes(drafter, [passage, *similar], text) < 0.7 * passes(drafter, [passage], text)


class Asking:
    """An engine with a tiny model, a public and a private index."""

    def __init__(self, home: Path, share_answers: bool = False) -> None:
        if not (home / "llama").exists():
            write_llama(home / "llama")
        chosen = Settings(
            model=str(home / "llama"), encoder="hash", device="cpu", max_new_tokens=40, stop_repeats=False,
            node_budget="fixed", share_answers=share_answers,
        )  # fmt: skip
        self.engine = Engine(chosen, home=Paths(home / "data", home / "cache"))
        self.engine.encoder = HashEncoder()
        (home / "notes.txt").write_text("the lambda is a function.\n\n" * 20)
        for folder in (self.public, self.private):
            index_files(self.engine, folder, [home / "notes.txt"])

    @property
    def public(self) -> Path:
        return self.engine.paths.indexes / "notes"

    @property
    def private(self) -> Path:
        return self.engine.paths.uploads / "token" / "my-uploads"

    def ask(self, person: str | None, folder: Path | None = None) -> Answer:
        *_, answer = self.engine.ask(QUESTION, folder or self.public, person=person)
        return answer


def test_the_same_question_asked_again_takes_fewer_passes_and_gives_the_same_answer(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    first, again = asking.ask("ann"), asking.ask("ann")
    assert again.text == first.text
    assert again.spans == first.spans
    assert again.stats.forward_passes < first.stats.forward_passes


def test_the_answer_of_one_person_saves_no_pass_of_another_or_of_nobody(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    first = asking.ask("ann").stats.forward_passes
    assert [asking.ask(person).stats.forward_passes for person in ("bob", None, "")] == [first] * 3


def test_shared_answers_save_passes_of_others_but_those_from_private_indexes_do_not(tmp_path: Path) -> None:
    asking = Asking(tmp_path, share_answers=True)
    first = asking.ask("ann", asking.private).stats.forward_passes
    assert asking.ask("bob").stats.forward_passes == first
    assert asking.ask("eve").stats.forward_passes < first


def test_a_person_who_has_gone_leaves_nothing(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    asking.engine.forget("ann")
    first = asking.ask("ann").stats.forward_passes
    asking.engine.forget("ann")
    assert asking.ask("ann").stats.forward_passes == first


def test_answers_are_not_shared_unless_the_setting_says_so() -> None:
    assert Settings().share_answers is False
