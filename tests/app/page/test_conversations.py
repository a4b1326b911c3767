from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.answers import Answer, Stats
from app.answering.spans import Span
from app.page.conversations import UNTITLED, Conversations, StoredTurn
from indexes.errors import ConversationError
from indexes.passages import Passage
from retrieval.finder import Found

ROOT = Path(__file__).parents[3]
ANNA, BEN = "a" * 32, "b" * 32
PASSAGE = Passage(7, "notes.pdf#3", "notes.pdf", "Notes <b>", 1200, "the cat\nsat down", 4)
ANSWER = Answer(
    "Who sat?",
    (Found(PASSAGE, 0.123456789),),
    Stats("trie", 512, 20, 9, 80, 0.75, 0.01, 0.4, 1.5, 2.0),
    "It was the cat sat down.",
    (Span(7, 23, "notes.pdf#3", 0, 16),),
    "stop",
    ("a note",),
)


@pytest.fixture
def kept(tmp_path: Path) -> Conversations:
    return Conversations(tmp_path / "data" / "conversations.sqlite")


def _asked(kept: Conversations, person: str, *questions: str) -> str:
    conversation = kept.start(person, "notes")
    for question in questions:
        kept.ask(person, conversation, question, "notes")
    return conversation


def _questions(kept: Conversations, person: str, conversation: str) -> list[str]:
    return [turn.question for turn in kept.read(person, conversation).turns]


def test_an_answer_comes_back_exactly_with_its_passages_spans_and_figures(kept: Conversations) -> None:
    conversation = kept.start(ANNA, "notes")
    turn = kept.ask(ANNA, conversation, "Who sat?", "notes")
    kept.answer(ANNA, turn, ANSWER)
    assert kept.read(ANNA, conversation).turns == (StoredTurn(turn, "notes", "Who sat?", ANSWER),)
    assert kept.turn(ANNA, turn).answer == ANSWER


def test_a_question_is_kept_before_it_is_answered(kept: Conversations) -> None:
    (turn,) = kept.read(ANNA, _asked(kept, ANNA, "Who sat?")).turns
    assert (turn.question, turn.answer) == ("Who sat?", None)


def test_a_conversation_is_called_after_its_first_question(kept: Conversations) -> None:
    assert kept.entries(ANNA) == []
    conversation = kept.start(ANNA, "notes")
    assert kept.entries(ANNA)[0].title == UNTITLED
    kept.ask(ANNA, conversation, "What is\na lambda?", "notes")
    kept.ask(ANNA, conversation, "And a closure?", "notes")
    assert kept.entries(ANNA)[0].title == "What is a lambda?"


def test_a_long_title_is_cut_between_words(kept: Conversations) -> None:
    kept.start(ANNA, "notes", "four " * 20)
    assert kept.entries(ANNA)[0].title == "four four four four four four four four four four four…"


def test_the_last_changed_conversation_is_listed_first(kept: Conversations) -> None:
    first, second = _asked(kept, ANNA, "one"), _asked(kept, ANNA, "two")
    assert [entry.id for entry in kept.entries(ANNA)] == [second, first]
    kept.ask(ANNA, first, "three", "notes")
    assert [entry.id for entry in kept.entries(ANNA)] == [first, second]


def test_a_conversation_is_renamed_but_not_to_nothing(kept: Conversations) -> None:
    conversation = _asked(kept, ANNA, "one")
    kept.rename(ANNA, conversation, " Cats  and dogs ")
    kept.rename(ANNA, conversation, "  ")
    assert kept.entries(ANNA)[0].title == "Cats and dogs"


def test_asking_at_an_earlier_turn_cuts_the_conversation_there(kept: Conversations) -> None:
    conversation = _asked(kept, ANNA, "one", "two", "three")
    second = kept.read(ANNA, conversation).turns[1].id
    kept.ask(ANNA, conversation, "TWO", "notes", second)
    assert _questions(kept, ANNA, conversation) == ["one", "TWO"]


def test_an_answer_to_a_turn_that_was_cut_away_is_not_kept(kept: Conversations) -> None:
    conversation = _asked(kept, ANNA, "one")
    (cut,) = kept.read(ANNA, conversation).turns
    kept.ask(ANNA, conversation, "again", "notes", cut.id)
    kept.answer(ANNA, cut.id, ANSWER)
    assert [turn.answer for turn in kept.read(ANNA, conversation).turns] == [None]


def test_what_is_deleted_is_nowhere_in_the_files(kept: Conversations, tmp_path: Path) -> None:
    conversation = _asked(kept, ANNA, "the purple lighthouse")
    kept.answer(ANNA, kept.read(ANNA, conversation).turns[0].id, ANSWER)
    assert any(b"purple lighthouse" in file.read_bytes() for file in (tmp_path / "data").iterdir())
    kept.delete(ANNA, conversation)
    assert kept.entries(ANNA) == []
    for file in (tmp_path / "data").iterdir():
        assert b"purple lighthouse" not in file.read_bytes()
        assert b"the cat sat down" not in file.read_bytes()


def test_nobody_reads_changes_or_answers_another_persons_conversation(kept: Conversations) -> None:
    conversation = _asked(kept, ANNA, "one")
    (turn,) = kept.read(ANNA, conversation).turns
    assert kept.entries(BEN) == []
    for attempt in (
        lambda: kept.read(BEN, conversation),
        lambda: kept.rename(BEN, conversation, "mine"),
        lambda: kept.delete(BEN, conversation),
        lambda: kept.ask(BEN, conversation, "two", "notes"),
        lambda: kept.ask(BEN, conversation, "two", "notes", turn.id),
        lambda: kept.turn(BEN, turn.id),
    ):
        with pytest.raises(ConversationError, match="not there any more"):
            attempt()
    kept.answer(BEN, turn.id, ANSWER)
    assert kept.read(ANNA, conversation).turns == (turn,)
    assert kept.entries(ANNA)[0].title == "one"


def test_a_turn_of_another_conversation_cuts_nothing_there(kept: Conversations) -> None:
    first, second = _asked(kept, ANNA, "one"), _asked(kept, ANNA, "two")
    turn = kept.read(ANNA, first).turns[0].id
    kept.ask(ANNA, second, "three", "notes", turn)
    assert _questions(kept, ANNA, first) == ["one"]


def test_choices_are_kept_per_person(kept: Conversations) -> None:
    kept.prefer(ANNA, {"drafter": "plain"})
    kept.prefer(ANNA, {"drafter": "trie", "top_k": 4})
    assert kept.preferences(ANNA) == {"drafter": "trie", "top_k": 4}
    assert kept.preferences(BEN) == {}


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    kept = Conversations(tmp_path_factory.mktemp("any") / "conversations.sqlite")
    assert _questions(kept, ANNA, _asked(kept, ANNA, text)) == [text]


def test_many_threads_lose_nothing(kept: Conversations) -> None:
    conversation = kept.start(ANNA, "notes")

    def ask(name: str) -> None:
        for number in range(10):
            kept.ask(ANNA, conversation, f"{name}{number}", "notes")

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(_questions(kept, ANNA, conversation)) == sorted(f"{name}{n}" for name in "abcd" for n in range(10))


WRITER = """
import sys
from pathlib import Path
from app.page.conversations import Conversations
kept = Conversations(Path(sys.argv[1]))
conversation = kept.start("a" * 32, "notes")
print(conversation, flush=True)
for number in range(10**6):
    kept.ask("a" * 32, conversation, f"question {number}", "notes")
    print(number, flush=True)
"""


def test_what_was_kept_survives_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "conversations.sqlite"
    for least in (1, 20, 50):
        file.unlink(missing_ok=True)
        command = [sys.executable, "-c", WRITER, str(file)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        conversation = process.stdout.readline().strip()
        for _ in range(least):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        told = [line for line in process.stdout if line.strip()]  # what it could still say
        process.wait()
        turns = Conversations(file).read(ANNA, conversation).turns
        assert len(turns) in (least + len(told), least + len(told) + 1)
        assert [turn.question for turn in turns] == [f"question {number}" for number in range(len(turns))]


def test_a_file_of_a_later_version_is_refused_with_what_to_do(kept: Conversations, tmp_path: Path) -> None:
    _asked(kept, ANNA, "one")
    with sqlite3.connect(tmp_path / "data" / "conversations.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(ConversationError, match=r"version 99.*move the file away"):
        kept.entries(ANNA)


def test_a_file_that_is_no_database_is_refused_by_name(kept: Conversations, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "conversations.sqlite").write_bytes(b"not a database, whatever it is called" * 100)
    with pytest.raises(ConversationError, match=r"conversations\.sqlite cannot be used"):
        kept.entries(ANNA)


def test_an_answer_that_cannot_be_read_leaves_its_question(kept: Conversations, tmp_path: Path) -> None:
    conversation = _asked(kept, ANNA, "one")
    with sqlite3.connect(tmp_path / "data" / "conversations.sqlite") as database:
        database.execute("UPDATE turns SET answer = '{}'")
    database.close()
    (turn,) = kept.read(ANNA, conversation).turns
    assert (turn.question, turn.answer) == ("one", None)


def test_the_file_is_for_its_owner_alone(kept: Conversations, tmp_path: Path) -> None:
    _asked(kept, ANNA, "one")
    assert (tmp_path / "data" / "conversations.sqlite").stat().st_mode & 0o077 == 0
