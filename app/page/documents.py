"""The documents panel: upload with progress, list, delete, index anew; and what can be asked."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from app.answering.engine import Engine
from app.documents.managing import list_documents
from app.documents.uploads import add_uploads, delete_uploads, list_uploads, reindex_uploads
from app.page.documents_html import index_html, uploads_html
from app.page.html import error_html, report_html
from app.page.parts import Changes, Parts, text
from app.page.people import People
from app.page.sources import UPLOADS, choices, choosable
from indexes.errors import QuotewrightError
from indexes.store import names
from retrieval.indexing import Progress, Report


class Documents:
    """The handlers of the documents panel."""

    def __init__(self, engine: Engine, people: People, parts: Parts) -> None:
        self._engine = engine
        self._people = people
        self._parts = parts

    def upload(
        self, files: list[str], token: str, request: gr.Request, progress: gr.Progress = gr.Progress()  # noqa: B008
    ) -> Changes:  # fmt: skip
        """Index uploaded files privately, and ask them from now on."""
        paths = [Path(file) for file in files or []]
        try:
            person = self._people.person(request, token)
            report = add_uploads(self._engine, person, paths, _shown(progress))
        except QuotewrightError as error:
            return {self._parts.report: error_html(str(error))}
        finally:  # nothing stays where another person might fetch it
            for path in paths:
                path.unlink(missing_ok=True)
        return {self._parts.report: _report(report), **self._listed(person, UPLOADS)}

    def reindex(
        self, source: str, token: str, request: gr.Request, progress: gr.Progress = gr.Progress()  # noqa: B008
    ) -> Changes:  # fmt: skip
        """Read all uploaded files again."""
        try:
            person = self._people.person(request, token)
            report = reindex_uploads(self._engine, person, _shown(progress))
        except QuotewrightError as error:
            return {self._parts.report: error_html(str(error))}
        return {self._parts.report: _report(report), **self._listed(person, source)}

    def delete(self, source: str, token: str, request: gr.Request, event: gr.EventData) -> Changes:
        """Delete one uploaded document."""
        person = self._people.person(request, token)
        try:
            delete_uploads(self._engine, person, [text(event, "source")])
        except QuotewrightError as error:
            return {self._parts.report: error_html(str(error)), **self._listed(person, source)}
        return {self._parts.report: report_html("Deleted.", {}), **self._listed(person, source)}

    def show(self, source: str, token: str, request: gr.Request) -> Changes:
        """List what there is."""
        return self._listed(self._people.person(request, token), source)

    def _listed(self, person: str, source: str) -> Changes:
        """The list, and what can be asked; what is asked stays as it is if it can."""
        try:
            mine = uploads_html(list_uploads(self._engine, person))
        except QuotewrightError as error:
            mine = error_html(f"{error}; or press “Index again”")
        common = "".join(map(self._index, names(self._engine.paths.indexes)))
        shared = f"<h3>For everybody here</h3>{common}" if common else ""
        asked = gr.update(choices=choices(self._engine, person), value=choosable(self._engine, person, source))
        return {self._parts.documents: mine + shared, self._parts.source: asked}

    def _index(self, name: str) -> str:
        try:
            return index_html(name, list_documents(self._engine.paths.indexes / name))
        except QuotewrightError as error:
            return error_html(f"{name}: {error}")


def _shown(progress: gr.Progress) -> Progress:
    def show(what: str, done: int, total: int) -> None:
        progress((done, total), desc=what, unit="")

    return show


def _report(report: Report) -> str:
    """What an indexing run did, in words."""
    said = f"{report.documents} documents, {report.passages} passages; {report.encoded} new or changed."
    if report.replaced:
        said += f" Replaced: {', '.join(report.replaced)}."
    return report_html(said, report.skipped)
