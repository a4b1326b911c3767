"""What happens on the page: which event calls which handler with what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.answering.engine import Engine
from app.page.chat import Chat
from app.page.chats import Chats
from app.page.conversations import Conversations
from app.page.documents import Documents
from app.page.html import error_html
from app.page.parts import Changes, Parts, told, told_as_it_goes
from app.page.people import People
from app.page.places import Places
from app.page.races import Races
from app.page.settings import SettingsPanel
from indexes.errors import QuotewrightError

PLACEHOLDER = "Ask a question (Enter sends, Shift+Enter is a new line)"
AT_ONCE = 64  # persons; the engine writes one answer at a time, and the others can be stopped while they wait
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
LONG: dict[str, Any] = QUIET | {"concurrency_limit": AT_ONCE, "concurrency_id": "asking"}
SHORT: dict[str, Any] = QUIET | {"concurrency_limit": AT_ONCE, "concurrency_id": "chats"}  # queued: after what is shown
INDEXING: dict[str, Any] = {"api_visibility": "private", "concurrency_limit": 4, "concurrency_id": "indexing"}


def connect(engine: Engine, parts: Parts, blocks: gr.Blocks) -> None:
    """Connect every component with its handler."""
    people, kept = People(engine), Conversations(engine.paths.conversations)
    chat = Chat(engine, people, kept, parts)
    _connect_asking(chat, parts)
    chats = Chats(engine, people, kept, parts)
    _connect_chats(chats, parts)
    places = Places(engine, people, kept, parts)
    documents = Documents(engine, people, parts)
    panel = SettingsPanel(engine, people, kept, parts)
    _connect_documents(places, documents, parts)
    _connect_settings(panel, parts)
    _connect_race(Races(engine, people, kept, parts), parts)

    def arrive(token: str, source: str, request: gr.Request) -> Changes:
        try:
            person = people.arrive(request, token)
            shown = {
                **chats.new(source, person, request),
                **documents.show(source, person, request),
                **panel.show(person, request),
                parts.question: gr.update(interactive=True, placeholder=PLACEHOLDER),
            }
        except QuotewrightError as error:
            return {parts.notice: error_html(str(error))}
        return shown if engine.settings.auth else {parts.token: person, **shown}

    arrived = blocks.load(arrive, [parts.token, parts.source], parts.all(), **QUIET)
    arrived.then(None, None, None, js="() => quotewright.focus('#qw-question textarea')")
    blocks.unload(people.leave)


def _connect_asking(chat: Chat, parts: Parts) -> None:
    outputs = parts.all()
    box = [parts.question, parts.chat, parts.editing, parts.source, parts.token]
    ask = told_as_it_goes(parts, chat.ask)
    parts.send.click(ask, box, outputs, **LONG)
    parts.question.submit(ask, box, outputs, **LONG)
    for shown in (parts.log, parts.live):
        beside = [parts.chat, parts.token]
        shown.ask_again(told_as_it_goes(parts, chat.ask_again), beside, outputs, **LONG)
        clicked = [parts.chat, parts.source, parts.token]
        shown.example(told_as_it_goes(parts, chat.example), clicked, outputs, **LONG)
        shown.edit_question(told(parts, chat.edit_question), parts.token, outputs, queue=False, **QUIET).then(
            None, None, None, js="() => quotewright.focus('#qw-question textarea')"
        )
    parts.cancel_edit.click(chat.cancel_edit, None, outputs, queue=False, **QUIET)
    parts.stop.click(chat.stop, None, None, queue=False, **QUIET)


def _connect_chats(chats: Chats, parts: Parts) -> None:
    def on(event: Callable[..., Any], handler: Callable[..., Changes], inputs: list[Any]) -> None:
        event(told(parts, handler), [*inputs, parts.token], parts.all(), **SHORT)

    on(parts.new.click, chats.new, [parts.source])
    on(parts.chats.open_chat, chats.open, [])
    on(parts.chats.rename_chat, chats.rename, [parts.chat])
    on(parts.chats.delete_chat, chats.delete, [parts.chat, parts.source])
    on(parts.chats.export_chat, chats.export, [])
    parts.source.change(told(parts, chats.choose), [parts.chat, parts.source], parts.all(), queue=False, **QUIET)


def _connect_documents(places: Places, documents: Documents, parts: Parts) -> None:
    outputs = parts.all()
    for shown in (parts.log, parts.live, parts.panel):
        shown.place(told(parts, places.place), parts.token, outputs, queue=False, **QUIET).then(
            None, None, None, js="() => quotewright.showPlace()"
        )
    for shown in (parts.place, parts.documents):
        shown.original(told(parts, places.original), parts.token, [parts.carrier, parts.notice], queue=False, **QUIET)
    changed = [parts.report, parts.documents, parts.source, parts.notice]
    telling: dict[str, Any] = INDEXING | {"show_progress_on": [parts.report]}
    parts.upload.upload(told(parts, documents.upload), [parts.upload, parts.token], changed, **telling)
    parts.reindex.click(told(parts, documents.reindex), [parts.source, parts.token], changed, **telling)
    parts.documents.delete_document(told(parts, documents.delete), [parts.source, parts.token], changed, **QUIET)


def _connect_settings(panel: SettingsPanel, parts: Parts) -> None:
    chosen: list[Any] = [parts.drafter, parts.budget, parts.temperature, parts.top_k, parts.length]
    for part in chosen:  # not `change`, which also tells of what the page itself has set
        for event in [part.input, part.release] if isinstance(part, gr.Slider) else [part.input]:
            event(panel.keep, [*chosen, parts.token], None, trigger_mode="always_last", **QUIET)
    parts.reset.click(told(parts, panel.reset), parts.token, parts.all(), **QUIET)


def _connect_race(races: Races, parts: Parts) -> None:
    changed = [parts.race_view, parts.race_start, parts.race_stop]
    asked = [parts.race_question, parts.source, parts.token]
    parts.race_start.click(races.start, asked, changed, **LONG)
    parts.race_question.submit(races.start, asked, changed, **LONG)
    parts.race_stop.click(races.stop, None, None, queue=False, **QUIET)
