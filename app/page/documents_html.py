"""The HTML of the list of documents and of a place in one. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.documents.places import Place
from app.documents.uploads import Upload
from app.page.answers_html import COLOURS
from app.page.html import attribute, button, escape, hint_html, unwrapped
from indexes.passages import DocumentFacts, Passage

MOST_LISTED = 200
NO_UPLOADS = hint_html(
    "Nothing uploaded yet. Text, Markdown, HTML, PDF, Word and reStructuredText files can be asked; only you see them."
)
NO_PLACE = hint_html("Click words in colour, and their place in the document appears here.")


def uploads_html(uploads: Sequence[Upload]) -> str:
    """A person's own documents, each with what can be done with it."""
    rows = "".join(_upload_html(upload) for upload in uploads)
    return f'<h3>Your documents</h3><ul class="qw-docs">{rows}</ul>' if rows else NO_UPLOADS


def _upload_html(upload: Upload) -> str:
    facts = upload.facts
    opens = "Open" if facts.pages is not None else "Save"  # a browser opens PDFs, and may not open the others here
    acts = button(opens, "original", f"{opens} {facts.title}", source=facts.source, page=1)
    acts += button("Delete", "delete_document", f"Delete {facts.title}", source=facts.source, confirm="Really delete?")
    return f'{_facts_html(facts, upload.bytes)}<div class="qw-acts">{acts}</div></li>'


def index_html(name: str, documents: Sequence[DocumentFacts]) -> str:
    """The documents of an index that everybody has; they are managed on the command line."""
    rows = "".join(f"{_facts_html(facts, None)}</li>" for facts in documents[:MOST_LISTED])
    more = len(documents) - MOST_LISTED
    rest = f"<p>… and {more} more</p>" if more > 0 else ""
    return (
        f'<details class="qw-index"><summary>{escape(name)}: {len(documents)} documents</summary>'
        f'<ul class="qw-docs">{rows}</ul>{rest}</details>'
    )


def _facts_html(facts: DocumentFacts, size: int | None) -> str:
    """A list item, left open, with what there is to tell of a document."""
    told = [_many(facts.pages, "page")] if facts.pages is not None else []
    told += [f"{size / 1024:.0f} kB" if size >= 1024 else _many(size, "byte")] if size is not None else []
    told += [_many(facts.chars, "character"), _many(facts.passages, "passage")]
    if facts.indexed_at is not None:
        told.append(f"indexed {datetime.fromtimestamp(facts.indexed_at).astimezone():%Y-%m-%d %H:%M}")
    name, source = escape(facts.title), attribute(facts.source)
    return f'<li><b><bdi title="{source}">{name}</bdi></b><span class="qw-facts">{escape(", ".join(told))}</span>'


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def place_html(place: Place, rank: int, original: bool) -> str:
    """The words in colour with what stands around them in the document; `original` offers the uploaded file."""
    path = "".join(f"<li><bdi>{escape(heading)}</bdi></li>" for heading in place.headings)
    headings = f'<ol class="qw-path" aria-label="Headings">{path}</ol>' if path else ""
    page = f'<span class="qw-page">page {place.page}</span>' if place.page else ""
    opened = ""
    if original:
        label = f"Open the file at page {place.page}" if place.page else "Save the file"
        opened = button(label, "original", source=place.source, page=place.page or 1)
    text = unwrapped(place.before + place.marked + place.after)
    start, end = len(place.before), len(place.before) + len(place.marked)
    before, after = ("… " if place.cut_before else ""), (" …" if place.cut_after else "")
    return (
        f'<article class="qw-place"><header><b><bdi>{escape(place.title)}</bdi></b> {page}{opened}{headings}</header>'
        f'<div class="qw-text" dir="auto">{before}{escape(text[:start])}'
        f'<mark class="qw-c{rank % COLOURS} qw-here" tabindex="-1">{escape(text[start:end])}</mark>'
        f"{escape(text[end:])}{after}</div></article>"
    )


def changed_html(passage: Passage, why: str) -> str:
    """A passage as it was read, where its document cannot show it any more."""
    note = f'<div class="qw-note">{escape(why)} This is the passage as it was read:</div>'
    return (
        f'<article class="qw-place"><header><b><bdi>{escape(passage.title)}</bdi></b></header>{note}'
        f'<div class="qw-text" dir="auto">{escape(passage.text)}</div></article>'
    )
