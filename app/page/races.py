"""The race view: one question answered plain and drafted at the same time. Nothing of it is kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import gradio as gr

from app.answering.engine import Engine
from app.answering.race import RaceState, race
from app.page.conversations import Conversations
from app.page.html import error_html, hint_html
from app.page.parts import Changes, Parts
from app.page.people import People
from app.page.preferences import answer_options
from app.page.race_html import race_html
from app.page.sources import folder
from indexes.errors import QuotewrightError

log = logging.getLogger("quotewright")

RACE = "race"  # what a page has running here
EVERY_S = 0.1  # how often the page is told


class Races:
    """The handlers of the race view."""

    def __init__(self, engine: Engine, people: People, kept: Conversations, parts: Parts) -> None:
        self._engine = engine
        self._people = people
        self._kept = kept
        self._parts = parts

    def start(self, question: str, source: str, token: str, request: gr.Request) -> Iterator[Changes]:
        """Run one race."""
        parts = self._parts
        busy = {parts.race_start: gr.update(visible=False), parts.race_stop: gr.update(visible=True)}
        idle = {parts.race_start: gr.update(visible=True), parts.race_stop: gr.update(visible=False)}
        yield {**busy, parts.race_view: hint_html("Searching, and waiting for the model …")}
        state, shown = None, 0.0
        try:
            for state in self._states(question, source, token, request):
                if time.perf_counter() - shown >= EVERY_S:
                    shown = time.perf_counter()
                    yield {parts.race_view: race_html(state)}
        except QuotewrightError as error:
            yield {**idle, parts.race_view: error_html(str(error))}
            return
        except Exception as error:  # a model may fail in any way: the page says so and goes on
            log.exception("a race failed")
            yield {**idle, parts.race_view: error_html(f"the race failed ({type(error).__name__}: {error}); try again")}
            return
        finally:
            self._people.stop(request, RACE)
        yield {**idle, parts.race_view: race_html(state) if state else ""}

    def _states(self, question: str, source: str, token: str, request: gr.Request) -> Iterator[RaceState]:
        person = self._people.person(request, token)
        options = answer_options(self._engine, self._kept.preferences(person))
        running = self._people.begin(request, RACE, {self._parts.race_view: gr.skip()})
        where = folder(self._engine, person, source)
        return race(self._engine, question, where, (), options, running.cancelled.is_set)

    def stop(self, request: gr.Request) -> None:
        """Stop both lanes."""
        self._people.stop(request, RACE)
