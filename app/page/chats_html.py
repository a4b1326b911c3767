"""The HTML of the list of conversations, and of a page on which nothing was asked yet."""

from __future__ import annotations

from collections.abc import Sequence

from app.page.answers_html import turn_html
from app.page.conversations import Entry, StoredTurn
from app.page.html import attribute, button, escape, hint_html
from app.page.sources import UPLOADS
from retrieval.python_docs import PYTHON_DOCS

LOADING = hint_html("Loading …")
NO_CHATS = hint_html("Your conversations will be listed here.")
EXAMPLES = (
    "What is a lambda expression?",
    "What does the with statement do?",
    "When is the else clause of a try statement executed?",
)


def chats_html(entries: Sequence[Entry], opened: str) -> str:
    """Every conversation, the open one with what can be done with it."""
    items = "".join(_chat_html(entry, entry.id == opened) for entry in entries)
    return f'<ul class="qw-chats">{items}</ul>' if items else NO_CHATS


def _chat_html(entry: Entry, opened: bool) -> str:
    current = ' aria-current="true"' if opened else ""
    title = attribute(entry.title)
    acts = ""
    if opened:
        name = f"conversation {entry.title}"
        acts = (
            f'<div class="qw-acts">'
            f"{button('Rename', 'rename_chat', f'Rename {name}', chat=entry.id, title=entry.title)}"
            f"{button('Export', 'export_chat', f'Export {name} as Markdown', chat=entry.id)}"
            f"{button('Delete', 'delete_chat', f'Delete {name}', chat=entry.id, confirm='Really delete?')}</div>"
        )
    return (
        f'<li{current}><button type="button" class="qw-do qw-chat" data-do="open_chat" data-chat="{entry.id}"{current} '
        f'title="{title}"><bdi>{escape(entry.title)}</bdi></button>{acts}</li>'
    )


def log_html(turns: Sequence[StoredTurn], error: str = "") -> str:
    """A conversation's turns, of which there is one at least; `error` is what went wrong with the last one."""
    shown = [turn_html(turn, last=False) for turn in turns[:-1]]
    return "".join([*shown, turn_html(turns[-1], last=True, error=error)])


def welcome_html(source: str, note: str) -> str:
    """What to do here, what the colours mean, examples for the built-in corpus, and a note about the model."""
    examples = "".join(button(question, "example", text=question) for question in EXAMPLES)
    tried = f'<p>For example:</p><div class="qw-examples">{examples}</div>' if source == PYTHON_DOCS else ""
    what = {PYTHON_DOCS: "Python's language reference", UPLOADS: "your own documents"}.get(source, source)
    return (
        '<div class="qw-welcome"><h2>Ask your documents</h2>'
        f"<p>You are asking <b>{escape(what)}</b>. Choose others under the question box, or add your own under "
        "<b>Documents</b>; only you can see them.</p>"
        '<p>Words <mark class="qw-c1">in colour</mark> stand in a <mark class="qw-c2">passage</mark> of that colour, '
        "word for word: click them to see them in their document. Words without a colour are the model’s own.</p>"
        f'{tried}<div class="qw-note">{escape(note)}</div></div>'
    )
