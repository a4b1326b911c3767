"""Conversations kept in one SQLite file, per person: what was asked, what was answered, from which passages.

Every method takes the person and touches nothing of anybody else's; who a person is, others decide. An answer is kept
as JSON with its passages, spans and figures, so that its citations come back exactly. What is written stays written:
the journal (WAL) survives a kill at any point; it is merged when nobody has the file open, and what is deleted is
overwritten.
"""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.answering.answers import Answer
from indexes.errors import ConversationError

VERSION = 1
TITLE_CHARS = 60
UNTITLED = "New chat"
SCHEMA = f"""
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, person TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL, changed REAL NOT NULL);
CREATE INDEX conversations_of_person ON conversations (person, changed);
CREATE TABLE turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    source TEXT NOT NULL, question TEXT NOT NULL, answer TEXT);
CREATE INDEX turns_of_conversation ON turns (conversation, id);
CREATE TABLE preferences (person TEXT PRIMARY KEY, chosen TEXT NOT NULL);
PRAGMA user_version = {VERSION};
"""


@functools.cache
def _answers() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


@dataclass(frozen=True, slots=True)
class Entry:
    """A conversation in the list: `source` is what was asked last in it, changed_s a time in seconds since 1970."""

    id: str
    title: str
    source: str
    changed_s: float


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A question, what it was put to, and its answer: None while that is being written, or if a kill cut it short."""

    id: int
    source: str
    question: str
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it was kept."""

    entry: Entry
    turns: tuple[StoredTurn, ...] = ()


class Conversations:
    """The conversations and choices in one file, which is made when something is first kept."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction, written when the block ends; a connection each, for SQLite's own locks to do the rest."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self._file, timeout=20, isolation_level=None)) as database:
                database.executescript("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON")
                database.execute("BEGIN IMMEDIATE")
                self._prepare(database)
                yield database
                database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise ConversationError(
                f"the conversations in {self._file} cannot be used ({error}); move the file away to begin a new one"
            ) from error

    def _prepare(self, database: sqlite3.Connection) -> None:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._file.chmod(0o600)
            for statement in SCHEMA.split(";")[:-1]:  # not executescript, which would end the transaction
                database.execute(statement)
        elif version != VERSION:
            raise ConversationError(
                f"{self._file} is of version {version}, and this Quotewright reads version {VERSION}; "
                "use the Quotewright that wrote it, or move the file away to begin a new one"
            )

    def start(self, person: str, source: str, title: str = UNTITLED) -> str:
        """A new conversation's id."""
        conversation = secrets.token_hex(8)
        with self._open() as database:
            values = (conversation, person, _short(title), source, time.time())
            database.execute("INSERT INTO conversations VALUES (?, ?, ?, ?, ?)", values)
        return conversation

    def entries(self, person: str) -> list[Entry]:
        """The person's conversations, the last changed first."""
        query = "SELECT id, title, source, changed FROM conversations WHERE person = ? ORDER BY changed DESC, id"
        with self._open() as database:
            return [Entry(*line) for line in database.execute(query, (person,))]

    def read(self, person: str, conversation: str) -> Conversation:
        """A conversation with all its turns. Raises ConversationError if this person has none with that id."""
        query = "SELECT id, source, question, answer FROM turns WHERE conversation = ? ORDER BY id"
        with self._open() as database:
            entry = self._entry(database, person, conversation)
            lines = database.execute(query, (conversation,)).fetchall()
        return Conversation(entry, tuple(_turn(line) for line in lines))

    def _entry(self, database: sqlite3.Connection, person: str, conversation: str) -> Entry:
        query = "SELECT id, title, source, changed FROM conversations WHERE id = ? AND person = ?"
        line = database.execute(query, (conversation, person)).fetchone()
        if line is None:
            raise ConversationError("this conversation is not there any more; choose another or start a new one")
        return Entry(*line)

    def rename(self, person: str, conversation: str, title: str) -> None:
        """Give a conversation another title; an empty one changes nothing."""
        with self._open() as database:
            self._entry(database, person, conversation)
            if title.strip():
                database.execute("UPDATE conversations SET title = ? WHERE id = ?", (_short(title), conversation))

    def delete(self, person: str, conversation: str) -> None:
        """Delete a conversation with everything in it."""
        with self._open() as database:
            self._entry(database, person, conversation)
            database.execute("DELETE FROM conversations WHERE id = ?", (conversation,))

    def ask(self, person: str, conversation: str, question: str, source: str, turn: int | None = None) -> int:
        """Keep a question before it is answered, and return its turn's id.

        With `turn`, the conversation is cut there first: that turn and what followed it are gone.
        """
        with self._open() as database:
            entry = self._entry(database, person, conversation)
            if turn is not None:
                database.execute("DELETE FROM turns WHERE conversation = ? AND id >= ?", (conversation, turn))
            title = _short(question) if entry.title == UNTITLED else entry.title
            values = (title, source, time.time(), conversation)
            database.execute("UPDATE conversations SET title = ?, source = ?, changed = ? WHERE id = ?", values)
            insert = "INSERT INTO turns (conversation, source, question) VALUES (?, ?, ?)"
            return int(database.execute(insert, (conversation, source, question)).lastrowid or 0)

    def turn(self, person: str, turn: int) -> StoredTurn:
        """One turn. Raises ConversationError if this person has none with that id."""
        query = (
            "SELECT turns.id, turns.source, question, answer FROM turns "
            "JOIN conversations ON conversation = conversations.id WHERE turns.id = ? AND person = ?"
        )
        with self._open() as database:
            line = database.execute(query, (turn, person)).fetchone()
        if line is None:
            raise ConversationError("this answer is not there any more; choose another")
        return _turn(line)

    def answer(self, person: str, turn: int, answer: Answer) -> None:
        """Keep a turn's answer; if the turn was cut away or deleted meanwhile, nothing is kept."""
        mine = "conversation IN (SELECT id FROM conversations WHERE person = ?)"
        with self._open() as database:
            stored = _answers().dump_json(answer).decode("utf-8")
            database.execute(f"UPDATE turns SET answer = ? WHERE id = ? AND {mine}", (stored, turn, person))

    def preferences(self, person: str) -> dict[str, Any]:
        """What the person has chosen for their questions; empty if nothing."""
        with self._open() as database:
            line = database.execute("SELECT chosen FROM preferences WHERE person = ?", (person,)).fetchone()
        return dict(json.loads(line[0])) if line else {}

    def prefer(self, person: str, chosen: dict[str, Any]) -> None:
        """Keep what the person has chosen."""
        with self._open() as database:
            database.execute("INSERT OR REPLACE INTO preferences VALUES (?, ?)", (person, json.dumps(chosen)))


def _turn(line: tuple[int, str, str, str | None]) -> StoredTurn:
    number, source, question, stored = line
    return StoredTurn(number, source, question, _answer(stored))


def _answer(stored: str | None) -> Answer | None:
    try:
        return None if stored is None else _answers().validate_json(stored)
    except ValidationError:  # written by a version that described answers otherwise: the question at least is there
        return None


def _short(title: str) -> str:
    """A title of one line, cut between words if it is too long."""
    title = " ".join(title.split()) or UNTITLED
    if len(title) <= TITLE_CHARS:
        return title
    return title[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
