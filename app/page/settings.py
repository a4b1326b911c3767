"""The settings panel: a person's own choices, kept as they are made."""

from __future__ import annotations

from dataclasses import asdict

import gradio as gr

from app.answering.engine import Engine
from app.page.conversations import Conversations
from app.page.parts import Changes, Parts
from app.page.people import People
from app.page.preferences import Chosen, chosen, defaults


class SettingsPanel:
    """The handlers of the settings panel."""

    def __init__(self, engine: Engine, people: People, kept: Conversations, parts: Parts) -> None:
        self._engine = engine
        self._people = people
        self._kept = kept
        self._parts = parts

    def keep(
        self, drafter: str, budget: int, temperature: float, top_k: int, length: int, token: str, request: gr.Request
    ) -> None:
        """Keep what is chosen; what cannot be is as if it were not chosen."""
        wanted = asdict(Chosen(drafter, budget, temperature, top_k, length))
        checked = asdict(chosen(self._engine, wanted))
        usual = asdict(defaults(self._engine))
        person = self._people.person(request, token)
        self._kept.prefer(person, {name: value for name, value in checked.items() if value != usual[name]})

    def show(self, token: str, request: gr.Request) -> Changes:
        """What the person has chosen."""
        return self._shown(chosen(self._engine, self._kept.preferences(self._people.person(request, token))))

    def reset(self, token: str, request: gr.Request) -> Changes:
        """Choose nothing: everything as it is set for all."""
        self._kept.prefer(self._people.person(request, token), {})
        return self._shown(defaults(self._engine))

    def _shown(self, values: Chosen) -> Changes:
        parts = self._parts
        return {
            parts.drafter: values.drafter,
            parts.budget: values.budget,
            parts.temperature: values.temperature,
            parts.top_k: values.top_k,
            parts.length: values.length,
        }
