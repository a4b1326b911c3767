"""Who asks, and what they have running: the one place where a request becomes a person.

A person is a token of 32 hexadecimal digits, under which everything of theirs is kept: files, conversations, choices,
answers that drafts may copy from. Without login it is the random one that their browser holds; with login it is the
user's own, whatever the browser says.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import gradio as gr

from app.answering.engine import Engine
from app.documents.uploads import is_token, new_token
from app.page.parts import Changes
from app.page.running import Running
from app.page.users import Users
from indexes.errors import SettingError


class People:
    """Persons, their open pages, and what these have running."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._users = Users(engine.paths.users)
        self._here: defaultdict[str, set[str]] = defaultdict(set)
        self._running: dict[tuple[str, str], Running] = {}
        self._lock = threading.Lock()

    def person(self, request: gr.Request, token: object) -> str:
        """Who asks. Raises SettingError for a removed user, and for what is no token."""
        if self._engine.settings.auth:
            return self._users.token(str(request.username or ""))
        if not is_token(token):
            raise SettingError("this browser has no token yet; reload the page")
        return str(token)

    def arrive(self, request: gr.Request, token: object) -> str:
        """Somebody has opened a page: who, a new person if the browser holds no token."""
        person = self.person(request, token if is_token(token) else new_token())
        with self._lock:
            self._here[person].add(str(request.session_hash))
        return person

    def leave(self, request: gr.Request) -> None:
        """A page was closed: stop what it has running, and with a person's last page forget what is in memory."""
        session = str(request.session_hash)
        with self._lock:
            for key in [key for key in self._running if key[0] == session]:
                self._running.pop(key).cancelled.set()
            gone = [person for person, sessions in self._here.items() if sessions == {session}]
            for sessions in self._here.values():
                sessions.discard(session)
            for person in gone:
                del self._here[person]
        for person in gone:
            self._engine.forget(person)

    def begin(self, request: gr.Request, what: str, no_change: Changes) -> Running:
        """What this page now has running under that name; what it had before is left."""
        self.leave_running(request, what)
        with self._lock:
            return self._running.setdefault((str(request.session_hash), what), Running(no_change))

    def stop(self, request: gr.Request, what: str) -> None:
        """Stop what this page has running: the model runs at most one more forward pass for it."""
        with self._lock:
            running = self._running.get((str(request.session_hash), what))
        if running is not None:
            running.cancelled.set()

    def leave_running(self, request: gr.Request, what: str) -> None:
        """Stop it, for the page shows something else now."""
        with self._lock:
            running = self._running.pop((str(request.session_hash), what), None)
        if running is not None:
            running.leave()
