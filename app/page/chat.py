"""Asking on the page: a question is kept, answered while the page shows it, and kept with its answer.

Asking again and editing an earlier question cut the conversation there. A page shows one conversation; opening another
stops what is being written, and what was written until then is kept.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import gradio as gr

from app.answering.answers import Answer
from app.answering.asking import AnswerOptions
from app.answering.engine import Engine
from app.page.answers_html import passages_html, turn_html
from app.page.chats_html import chats_html, log_html
from app.page.conversations import Conversations, StoredTurn
from app.page.parts import Changes, Parts, busy, idle, number, text
from app.page.people import People
from app.page.preferences import answer_options
from app.page.running import Running
from app.page.sources import folder
from indexes.errors import QuotewrightError
from retrieval.conversation import Turn

log = logging.getLogger("quotewright")

CHAT = "chat"  # what a page has running here
EVERY_S = 0.06  # how often the page is told how far an answer is
PANEL_EVERY_S = 0.4  # and its passages, with what was copied from them
BUSY = "Searching, and waiting for the model …"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that was kept and is now to be answered."""

    person: str
    chat: str
    turn: StoredTurn
    earlier: tuple[StoredTurn, ...]
    options: AnswerOptions
    running: Running


class Chat:
    """The handlers of the question box, and of what stands beside questions and answers."""

    def __init__(self, engine: Engine, people: People, kept: Conversations, parts: Parts) -> None:
        self._engine = engine
        self._people = people
        self._kept = kept
        self._parts = parts

    def ask(
        self, question: str, chat: str, editing: int, source: str, token: str, request: gr.Request
    ) -> Iterator[Changes]:
        """Answer what is in the question box."""
        question = (question or "").strip()
        if question:
            yield {self._parts.question: ""}
            yield from self._ask(question, chat, editing or None, source, token, request)

    def example(
        self, chat: str, source: str, token: str, request: gr.Request, event: gr.EventData
    ) -> Iterator[Changes]:
        """Answer an example that was clicked."""
        if question := text(event, "text").strip():
            yield from self._ask(question, chat, None, source, token, request)

    def ask_again(self, chat: str, token: str, request: gr.Request, event: gr.EventData) -> Iterator[Changes]:
        """Answer a question once more, by another seed if words are drawn by chance."""
        turn = self._kept.turn(self._people.person(request, token), number(event, "turn"))
        yield from self._ask(turn.question, chat, turn.id, turn.source, token, request, anew=True)

    def edit_question(self, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Put an earlier question into the box, to be asked in its old place."""
        turn = self._kept.turn(self._people.person(request, token), number(event, "turn"))
        parts = self._parts
        return {parts.question: turn.question, parts.editing: turn.id, parts.edit_row: gr.update(visible=True)}

    def cancel_edit(self) -> Changes:
        """Leave the earlier question as it is."""
        parts = self._parts
        return {parts.question: "", parts.editing: 0, parts.edit_row: gr.update(visible=False)}

    def stop(self, request: gr.Request) -> None:
        """Stop the answer that is being written."""
        self._people.stop(request, CHAT)

    def _ask(
        self,
        question: str,
        chat: str,
        cut: int | None,
        source: str,
        token: str,
        request: gr.Request,
        anew: bool = False,
    ) -> Iterator[Changes]:
        person = self._people.person(request, token)
        chosen = answer_options(self._engine, self._kept.preferences(person))
        if anew and chosen.sampling is not None and chosen.sampling.temperature > 0:
            chosen = replace(chosen, sampling=replace(chosen.sampling, seed=random.getrandbits(31)))
        folder(self._engine, person, source)  # refused before it is kept
        chat = chat or self._kept.start(person, source)
        self._kept.ask(person, chat, question, source, cut)
        *earlier, turn = self._kept.read(person, chat).turns
        running = self._people.begin(request, CHAT, {self._parts.notice: gr.skip()})
        asked = _Asked(person, chat, turn, tuple(earlier), chosen, running)
        yield from running.show(self._begun(asked))
        yield from self._answer(asked)

    def _begun(self, asked: _Asked) -> Changes:
        parts, entries = self._parts, self._kept.entries(asked.person)
        return {
            parts.chat: asked.chat,
            parts.chats: chats_html(entries, asked.chat),
            parts.log: "".join(turn_html(turn, last=False) for turn in asked.earlier),
            parts.live: turn_html(asked.turn, last=False, busy=BUSY),
            parts.editing: 0,
            parts.edit_row: gr.update(visible=False),
            **busy(parts),
        }

    def _answer(self, asked: _Asked) -> Iterator[Changes]:
        """Have it answered; what was written is kept whatever happens, a page that is closed included."""
        state: Answer | None = None
        error = ""
        shown = told = 0.0
        try:
            for state in self._states(asked):
                now = time.perf_counter()
                if now - shown >= EVERY_S:
                    shown = now
                    live = replace(asked.turn, answer=state)
                    yield from asked.running.show({self._parts.live: turn_html(live, last=False, busy=BUSY)})
                if (state.spans and now - told >= PANEL_EVERY_S) or not told:
                    told = now
                    turns = [*asked.earlier, replace(asked.turn, answer=state)]
                    yield from asked.running.show({self._parts.panel: passages_html(turns)})
        except QuotewrightError as problem:
            error = str(problem)
        except Exception as problem:  # a model may fail in any way: the page says so and goes on
            log.exception("an answer failed")
            error = f"the answer could not be written ({type(problem).__name__}: {problem}); ask again"
        finally:
            asked.running.cancelled.set()
            if state is not None:
                state = state if state.finished else replace(state, finished="cancelled")
                self._kept.answer(asked.person, asked.turn.id, state)
        yield from asked.running.show(self._done(asked, state, error))

    def _states(self, asked: _Asked) -> Iterator[Answer]:
        turns = [Turn(turn.question, turn.answer.text) for turn in asked.earlier if turn.answer and turn.answer.text]
        return self._engine.ask(
            asked.turn.question,
            folder(self._engine, asked.person, asked.turn.source),
            turns,
            asked.options,
            cancelled=asked.running.cancelled.is_set,
            person=asked.person,
        )

    def _done(self, asked: _Asked, state: Answer | None, error: str) -> Changes:
        parts = self._parts
        turns = [*asked.earlier, replace(asked.turn, answer=state)]
        return {
            parts.log: log_html(turns, error),
            parts.live: "",
            parts.panel: passages_html(turns),
            **idle(parts),
        }
