"""The HTML of the chat page: pure functions from answers to markup.

Every character of a question, an answer, a document or a file name that is not a letter, a digit or a space becomes
a numeric entity, so that neither HTML nor Markdown nor a template can find anything in it to interpret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.answers import Answer, Stats
from app.spans import Span

COLOURS = 6

NOTHING_YET = '<div class="qw-hint">The passages that an answer was written from appear here.</div>'
ENDINGS = {
    "cancelled": "Stopped.",
    "length": "Cut at the token limit.",
    "context": "Cut at the model's context limit.",
    "repetition": "Stopped where it began to repeat itself.",
}


def escape(text: str) -> str:
    """The text as HTML that shows it and nothing else; line breaks stay line breaks."""
    return "".join(map(_entity, text.replace("\r\n", "\n")))


def _entity(character: str) -> str:
    if character.isalnum() or character == " ":
        return character
    if character == "\n":
        return "<br>"
    return f"&#{ord(character)};" if character.isprintable() or ord(character) > 127 else "&#65533;"


def question_html(question: str) -> str:
    """What was asked, as a chat message."""
    return f'<div class="qw-text" dir="auto">{escape(question)}</div>'


def answer_html(answer: Answer, turn: int) -> str:
    """An answer as a chat message: copied spans marked in their passage's colour, notes, and one line of figures."""
    ranks = {found.passage.id: rank for rank, found in enumerate(answer.passages, start=1)}
    parts, position = [], 0
    for span in answer.spans:
        rank = ranks[span.passage_id]
        title = escape(f"stands in [{rank}] {span.passage_id}")
        parts.append(escape(answer.text[position : span.start]))
        text = escape(answer.text[span.start : span.end])
        parts.append(f'<mark class="qw-span qw-c{rank % COLOURS} qw-t{turn}-p{rank}" title="{title}">{text}</mark>')
        position = span.end
    parts.append(escape(answer.text[position:]))
    ending = [ENDINGS[answer.finished]] if answer.finished in ENDINGS else []
    notes = "".join(f'<div class="qw-note">{escape(note)}</div>' for note in (*ending, *answer.notes))
    body = "".join(parts) or "&#8230;"
    return f'<div class="qw-text qw-answer" dir="auto">{body}</div>{notes}{_figures_html(answer.stats)}'


def _figures_html(stats: Stats) -> str:
    return f'<div class="qw-figures">{escape(stats.line())}</div>' if stats.forward_passes else ""


def error_html(message: str) -> str:
    """An error as a chat message."""
    return f'<div class="qw-error">{escape(message)}</div>'


def passages_html(answers: Sequence[Answer]) -> str:
    """The passages of every answer, the latest first, with the copied text marked inside them."""
    turns = [(turn, answer) for turn, answer in enumerate(answers) if answer.passages]
    return "".join(_turn_html(turn, answer) for turn, answer in reversed(turns)) or NOTHING_YET


def _turn_html(turn: int, answer: Answer) -> str:
    cards = "".join(_card_html(answer, turn, rank) for rank in range(1, len(answer.passages) + 1))
    return f'<section><h4 class="qw-asked" dir="auto">{escape(answer.question)}</h4>{cards}</section>'


def _card_html(answer: Answer, turn: int, rank: int) -> str:
    passage = answer.passages[rank - 1].passage
    page = f", page {passage.page}" if passage.page else ""
    copied = _merged(span for span in answer.spans if span.passage_id == passage.id)
    parts, position = [], 0
    for start, end in copied:
        parts.append(escape(passage.text[position:start]))
        parts.append(f'<mark class="qw-c{rank % COLOURS}">{escape(passage.text[start:end])}</mark>')
        position = end
    parts.append(escape(passage.text[position:]))
    return (
        f'<article class="qw-passage qw-b{rank % COLOURS}" id="qw-t{turn}-p{rank}">'
        f"<header><b>{rank}</b> <bdi>{escape(passage.source + page)}</bdi></header>"
        f'<div class="qw-text" dir="auto">{"".join(parts)}</div></article>'
    )


def _merged(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """What the spans cover in their passage, in order and without overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((span.passage_start, span.passage_end) for span in spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def report_html(summary: str, skipped: dict[str, str]) -> str:
    """What an upload did, and which files were skipped and why."""
    lines = "".join(f"<li><bdi>{escape(name)}</bdi>: {escape(reason)}</li>" for name, reason in skipped.items())
    return f'<div class="qw-report">{escape(summary)}{f"<ul>{lines}</ul>" if lines else ""}</div>'
