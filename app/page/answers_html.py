"""The HTML of a conversation: questions, answers with their copied spans marked, and the passages beside them.

Pure functions from what was kept to markup. A span leads to its place in the document, by its turn's id and its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.answering.answers import Answer, Stats
from app.answering.spans import Span
from app.page.conversations import StoredTurn
from app.page.html import attribute, button, error_html, escape, hint_html, unwrapped
from app.page.markdown import answer_markdown

COLOURS = 6
NOT_KEPT = 0  # no turn has this id

NOTHING_YET = hint_html(
    "The passages that an answer was written from appear here. Words that the answer copied are marked in them."
)
NOTHING_FOUND = "nothing-found"  # how an answer ends when no passage is about the question
ENDINGS = {
    "cancelled": "Stopped.",
    "length": "Cut at the token limit.",
    "context": "Cut at the model's context limit.",
    "repetition": "Stopped where it began to repeat itself.",
}
UNANSWERED = "This question was not answered: it was interrupted."


def turn_html(turn: StoredTurn, last: bool, busy: str = "", error: str = "") -> str:
    """A question and what came of it. `busy` says what is being done, while nothing can be shown yet."""
    acts = "" if busy else button("Edit", "edit_question", "Edit this question and ask it again", turn=turn.id)
    if error:
        reply = error_html(error)
    elif turn.answer is None:
        reply = f'<div class="qw-busy">{escape(busy)}</div>' if busy else f'<div class="qw-note">{UNANSWERED}</div>'
    else:
        reply = answer_html(turn.answer, turn.id)
    below = "" if busy else _acts_html(turn, last)
    asked = f'<div class="qw-text" dir="auto">{escape(turn.question)}</div>'
    return (
        f'<article class="qw-turn"><div class="qw-question">{asked}{acts}</div>'
        f'<div class="qw-reply">{reply}{below}</div></article>'
    )


def _acts_html(turn: StoredTurn, last: bool) -> str:
    acts = []
    if turn.answer is not None and turn.answer.text:
        acts.append(button("Copy", "copy", text=turn.answer.text))
        acts.append(button("Copy with sources", "copy", text=answer_markdown(turn.answer)))
    if last:
        acts.append(button("Ask again", "ask_again", turn=turn.id))
    return f'<div class="qw-acts">{"".join(acts)}</div>' if acts else ""


def answer_html(answer: Answer, turn: int = NOT_KEPT) -> str:
    """An answer: copied spans marked in their passage's colour, notes, and one line of figures.

    The spans of one that is not kept lead nowhere.
    """
    ranks = {found.passage.id: rank for rank, found in enumerate(answer.passages, start=1)}
    parts, position = [], 0
    for number, span in enumerate(answer.spans):
        rank = ranks[span.passage_id]
        parts.append(escape(answer.text[position : span.start]))
        parts.append(_span_html(answer, span, rank, turn, number))
        position = span.end
    parts.append(escape(answer.text[position:]))
    ending = [ENDINGS[answer.finished]] if answer.finished in ENDINGS else []
    notes = "".join(f'<div class="qw-note">{escape(note)}</div>' for note in (*ending, *answer.notes))
    kind = " qw-nothing-found" if answer.finished == NOTHING_FOUND else ""
    body = "".join(parts) or "&#8230;"
    return f'<div class="qw-text qw-answer{kind}" dir="auto">{body}</div>{notes}{_figures_html(answer.stats)}'


def _span_html(answer: Answer, span: Span, rank: int, turn: int, number: int) -> str:
    passage = answer.passages[rank - 1].passage
    title = attribute(f"stands in passage {rank}, {passage.source}")
    acts = f'role="button" tabindex="0" data-do="place" data-turn="{turn}" data-span="{number}"' if turn else ""
    return (
        f'<mark class="qw-span qw-c{rank % COLOURS}" data-rank="{rank}" title="{title}" {acts}>'
        f"{escape(answer.text[span.start : span.end])}</mark>"
    )


def _figures_html(stats: Stats) -> str:
    return f'<div class="qw-figures">{escape(stats.line())}</div>' if stats.forward_passes else ""


def passages_html(turns: Sequence[StoredTurn]) -> str:
    """The passages of every answer, the latest first, with the copied text marked inside them."""
    return "".join(map(_passages_of_turn, reversed(turns))) or NOTHING_YET


def _passages_of_turn(turn: StoredTurn) -> str:
    if turn.answer is None or not turn.answer.passages:
        return ""
    cards = "".join(_card_html(turn.answer, turn.id, rank) for rank in range(1, len(turn.answer.passages) + 1))
    return f'<section><h3 class="qw-asked" dir="auto">{escape(turn.question)}</h3>{cards}</section>'


def _card_html(answer: Answer, turn: int, rank: int) -> str:
    found = answer.passages[rank - 1]
    passage = found.passage
    page = f", page {passage.page}" if passage.page else ""
    copied = merged(span for span in answer.spans if span.passage_id == passage.id)
    name = f"Show passage {rank} in its document"
    return (
        f'<article class="qw-passage qw-b{rank % COLOURS}" id="qw-t{turn}-p{rank}">'
        f"<header><b>{rank}</b> <bdi>{escape(passage.source + page)}</bdi>"
        f"{button('In the document', 'place', name, turn=turn, passage=rank)}</header>"
        f'<div class="qw-text" dir="auto">{marked_html(unwrapped(passage.text), copied, rank)}</div></article>'
    )


def marked_html(text: str, runs: Iterable[tuple[int, int]], rank: int) -> str:
    """The text with runs of its characters, in order and without overlap, marked in a passage's colour."""
    parts, position = [], 0
    for start, end in runs:
        parts.append(escape(text[position:start]))
        parts.append(f'<mark class="qw-c{rank % COLOURS}">{escape(text[start:end])}</mark>')
        position = end
    parts.append(escape(text[position:]))
    return "".join(parts)


def merged(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """What the spans cover in their passage, in order and without overlap."""
    runs: list[tuple[int, int]] = []
    for start, end in sorted((span.passage_start, span.passage_end) for span in spans):
        if runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        else:
            runs.append((start, end))
    return runs
