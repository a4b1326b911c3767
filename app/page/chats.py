"""The list of conversations: opened, begun, renamed, deleted, exported."""

from __future__ import annotations

import re

import gradio as gr

from app.answering.engine import Engine
from app.page.answers_html import NOTHING_YET, passages_html
from app.page.chat import CHAT
from app.page.chats_html import chats_html, log_html, welcome_html
from app.page.conversations import Conversation, Conversations
from app.page.downloads import text_download
from app.page.markdown import conversation_markdown
from app.page.parts import Changes, Parts, idle, text
from app.page.people import People
from app.page.sources import choosable


class Chats:
    """The handlers of the list of conversations."""

    def __init__(self, engine: Engine, people: People, kept: Conversations, parts: Parts) -> None:
        self._engine = engine
        self._people = people
        self._kept = kept
        self._parts = parts

    def new(self, source: str, token: str, request: gr.Request) -> Changes:
        """A new conversation; it is kept with its first question."""
        self._people.leave_running(request, CHAT)
        return self._empty(self._people.person(request, token), source)

    def open(self, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Show another conversation."""
        person = self._people.person(request, token)
        self._people.leave_running(request, CHAT)
        return self._shown(person, self._kept.read(person, text(event, "chat")))

    def rename(self, chat: str, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Give a conversation another title."""
        person = self._people.person(request, token)
        self._kept.rename(person, text(event, "chat"), text(event, "title"))
        return {self._parts.chats: chats_html(self._kept.entries(person), chat)}

    def delete(self, chat: str, source: str, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Delete a conversation."""
        person, deleted = self._people.person(request, token), text(event, "chat")
        if deleted == chat:
            self._people.leave_running(request, CHAT)
        self._kept.delete(person, deleted)
        if deleted != chat:
            return {self._parts.chats: chats_html(self._kept.entries(person), chat)}
        return self._empty(person, source)

    def export(self, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Send a conversation as a Markdown file, with its citations."""
        conversation = self._kept.read(self._people.person(request, token), text(event, "chat"))
        stem = re.sub(r"[^\w -]+", "", conversation.entry.title).strip() or "conversation"
        return {self._parts.carrier: text_download(f"{stem}.md", conversation_markdown(conversation))}

    def choose(self, chat: str, source: str) -> Changes:
        """Something else is asked from now on; a page without questions says what."""
        return {} if chat else {self._parts.log: self._welcome(str(source))}

    def _welcome(self, source: str) -> str:
        return welcome_html(source, self._engine.profile.note)

    def _empty(self, person: str, source: str) -> Changes:
        parts = self._parts
        return {
            **self._ready(),
            parts.chat: "",
            parts.chats: chats_html(self._kept.entries(person), ""),
            parts.log: self._welcome(source),
            parts.panel: NOTHING_YET,
        }

    def _shown(self, person: str, conversation: Conversation) -> Changes:
        parts, entry = self._parts, conversation.entry
        source = choosable(self._engine, person, entry.source)
        return {
            **self._ready(),
            parts.chat: entry.id,
            parts.chats: chats_html(self._kept.entries(person), entry.id),
            parts.log: log_html(conversation.turns) if conversation.turns else self._welcome(source),
            parts.panel: passages_html(conversation.turns),
            parts.source: gr.update(value=source),
        }

    def _ready(self) -> Changes:
        """Nothing is being written, nothing edited."""
        parts = self._parts
        return {
            parts.live: "",
            parts.question: "",
            parts.editing: 0,
            parts.edit_row: gr.update(visible=False),
            **idle(parts),
        }
