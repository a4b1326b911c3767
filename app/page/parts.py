"""The page's components by name, so that what handles their events can say which of them change."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from app.page.html import error_html
from indexes.errors import QuotewrightError, SettingError

Changes = dict[Any, Any]  # component -> its new value, or a gr.update


@dataclass(frozen=True, slots=True)
class Parts:
    """Every component that an event may read or change."""

    token: gr.BrowserState
    chat: gr.State  # id of the open conversation, or ""
    editing: gr.State  # id of the turn whose question is being edited, or 0
    notice: gr.HTML
    chats: gr.HTML
    new: gr.Button
    log: gr.HTML
    live: gr.HTML
    edit_row: gr.Row
    cancel_edit: gr.Button
    question: gr.Textbox
    send: gr.Button
    stop: gr.Button
    source: gr.Dropdown
    tabs: gr.Tabs
    panel: gr.HTML
    place: gr.HTML
    upload: gr.UploadButton
    report: gr.HTML
    documents: gr.HTML
    reindex: gr.Button
    carrier: gr.HTML
    drafter: gr.Dropdown
    budget: gr.Slider
    temperature: gr.Slider
    top_k: gr.Slider
    length: gr.Slider
    reset: gr.Button
    race_question: gr.Textbox
    race_start: gr.Button
    race_stop: gr.Button
    race_view: gr.HTML

    def all(self) -> list[Any]:
        """Every component: what a handler may change."""
        return [getattr(self, field.name) for field in fields(self)]


def told(parts: Parts, handler: Callable[..., Changes]) -> Callable[..., Changes]:
    """The handler, its errors shown as text; an old error is taken away."""

    @functools.wraps(handler)  # Gradio reads the handler's annotations
    def handle(*arguments: Any) -> Changes:
        try:
            return {parts.notice: "", **handler(*arguments)}
        except QuotewrightError as error:
            return {parts.notice: error_html(str(error))}

    return handle


def told_as_it_goes(parts: Parts, handler: Callable[..., Iterator[Changes]]) -> Callable[..., Iterator[Changes]]:
    """The same for a handler that yields."""

    @functools.wraps(handler)  # Gradio reads the handler's annotations
    def handle(*arguments: Any) -> Iterator[Changes]:
        yield {parts.notice: ""}
        try:
            yield from handler(*arguments)
        except QuotewrightError as error:
            yield {parts.notice: error_html(str(error))}

    return handle


def number(event: gr.EventData, name: str) -> int:
    """A whole number that the browser sent with an event. Raises SettingError for anything else."""
    value = text(event, name)
    if not value.isascii() or not value.isdecimal() or len(value) > 15:
        raise SettingError(f"the page sent {name} = {value[:40]!r}, which is no number; reload the page")
    return int(value)


def text(event: gr.EventData, name: str) -> str:
    """A text that the browser sent with an event; empty if it sent none."""
    data = event._data
    return str(data.get(name, "")) if isinstance(data, dict) else ""
