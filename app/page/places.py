"""A click on a copied span, or on a passage, shows its place in the document that it was read from."""

from __future__ import annotations

import gradio as gr

from app.answering.engine import Engine
from app.documents.places import find_place
from app.documents.uploads import original_upload
from app.page.conversations import Conversations, StoredTurn
from app.page.documents_html import changed_html, place_html
from app.page.downloads import original_download
from app.page.parts import Changes, Parts, number, text
from app.page.people import People
from app.page.sources import UPLOADS, folder
from indexes.errors import QuotewrightError, SettingError
from indexes.passages import Passage

SOURCE_TAB = "source"


class Places:
    """The handlers of what leads to a document."""

    def __init__(self, engine: Engine, people: People, kept: Conversations, parts: Parts) -> None:
        self._engine = engine
        self._people = people
        self._kept = kept
        self._parts = parts

    def place(self, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Show where a span or a passage stands."""
        person = self._people.person(request, token)
        turn = self._kept.turn(person, number(event, "turn"))
        passage, rank, start, end = _wanted(turn, event)
        shown = self._shown(person, turn.source, passage, rank, start, end)
        return {self._parts.place: shown, self._parts.tabs: gr.update(selected=SOURCE_TAB)}

    def _shown(self, person: str, source: str, passage: Passage, rank: int, start: int, end: int) -> str:
        """The place of characters [start, end) of a passage; the passage itself if its document has changed."""
        try:
            store = self._engine.open(folder(self._engine, person, source)).passages
            place = find_place(store, passage.source, passage.start + start, passage.start + end)
        except QuotewrightError as error:
            return changed_html(passage, f"The document cannot be shown ({error}).")
        if place.marked != passage.text[start:end]:
            return changed_html(passage, "The document has changed since.")
        return place_html(place, rank, original=source == UPLOADS)

    def original(self, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Send an uploaded file to the person who uploaded it."""
        person = self._people.person(request, token)
        original = original_upload(self._engine, person, text(event, "source"))
        return {self._parts.carrier: original_download(original, number(event, "page"))}


def _wanted(turn: StoredTurn, event: gr.EventData) -> tuple[Passage, int, int, int]:
    """The passage that was clicked, its rank, and which of its characters."""
    answer = turn.answer
    if answer is None:
        raise SettingError("this question was not answered; ask it again")
    passages = [found.passage for found in answer.passages]
    if text(event, "passage"):
        rank = number(event, "passage")
        if 1 <= rank <= len(passages):
            return passages[rank - 1], rank, 0, len(passages[rank - 1].text)
    elif (chosen := number(event, "span")) < len(answer.spans):
        span = answer.spans[chosen]
        rank = next(rank for rank, passage in enumerate(passages, start=1) if passage.id == span.passage_id)
        return passages[rank - 1], rank, span.passage_start, span.passage_end
    raise SettingError("this passage is not part of the answer any more; reload the page")
