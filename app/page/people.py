"""Who asks, and what they have running: the one place where a request becomes a person.

A person is a token of 32 hexadecimal digits, under which everything of theirs is kept: files, conversations, choices,
answers that drafts may copy from. Without login it is the random one that their browser holds; with login it is the
user's own, whatever the browser says.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import gradio as gr

from app.engine import Engine
from app.uploads import is_token, new_token
from app.users import Users
from indexes.errors import SettingError


class People:
    """Persons, their open pages, and the flags by which their answers are cancelled."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._users = Users(engine.paths.users)
        self._here: defaultdict[str, set[str]] = defaultdict(set)
        self._cancels: dict[tuple[str, str], threading.Event] = {}
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
            for key in [key for key in self._cancels if key[0] == session]:
                self._cancels.pop(key).set()
            gone = [person for person, sessions in self._here.items() if sessions == {session}]
            for sessions in self._here.values():
                sessions.discard(session)
            for person in gone:
                del self._here[person]
        for person in gone:
            self._engine.forget(person)

    def begin(self, request: gr.Request, what: str) -> threading.Event:
        """A new flag for what this page now has running; what it had running before under that name is stopped."""
        self.stop(request, what)
        with self._lock:
            return self._cancels.setdefault((str(request.session_hash), what), threading.Event())

    def stop(self, request: gr.Request, what: str) -> None:
        """Stop what this page has running: the model runs at most one more forward pass for it."""
        with self._lock:
            flag = self._cancels.pop((str(request.session_hash), what), None)
        if flag is not None:
            flag.set()
