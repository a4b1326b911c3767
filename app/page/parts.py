"""The page's components by name, so that what handles their events can say which of them change."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from app.page.html import error_html
from indexes.errors import QuotewrightError, SettingError

log = logging.getLogger("quotewright")

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
        except Exception as error:  # a fault of ours: said, logged, and the page goes on
            return {parts.notice: _fault_html(error)}

    return handle


def told_as_it_goes(parts: Parts, handler: Callable[..., Iterator[Changes]]) -> Callable[..., Iterator[Changes]]:
    """The same for a handler that yields."""

    @functools.wraps(handler)  # Gradio reads the handler's annotations
    def handle(*arguments: Any) -> Iterator[Changes]:
        yield {parts.notice: ""}
        try:
            yield from handler(*arguments)
        except QuotewrightError as error:
            yield {parts.notice: error_html(str(error)), **idle(parts)}
        except Exception as error:
            yield {parts.notice: _fault_html(error), **idle(parts)}

    return handle


def idle(parts: Parts) -> Changes:
    """Nothing is being written: Ask instead of Stop."""
    return {parts.send: gr.update(visible=True), parts.stop: gr.update(visible=False)}


def busy(parts: Parts) -> Changes:
    """Something is being written: Stop instead of Ask."""
    return {parts.send: gr.update(visible=False), parts.stop: gr.update(visible=True)}


def _fault_html(error: Exception) -> str:
    """To be called where the error was caught, for the log to tell where it was raised."""
    log.exception("the page failed")
    return error_html(f"Something went wrong here ({type(error).__name__}: {error}). Please report it, and try again.")


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
