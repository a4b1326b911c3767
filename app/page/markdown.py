"""Answers and conversations as Markdown, with numbered citations after what was copied and a list of the sources."""

from __future__ import annotations

from app.answering.answers import Answer
from app.page.conversations import Conversation

QUOTED_CHARS = 300


def answer_markdown(answer: Answer) -> str:
    """The answer's text with [n] after each copied span, then the passages that were copied from."""
    numbers = _numbers(answer)
    parts, position = [], 0
    for number, span in enumerate(answer.spans, start=1):
        parts.append(answer.text[position : span.end])
        following = answer.spans[number] if number < len(answer.spans) else None
        position = span.end
        between = answer.text[span.end : following.start].strip() if following else ""
        if following and following.passage_id == span.passage_id and not between:
            continue  # the next span goes on where this one ended
        parts.append(f" [{numbers[span.passage_id]}]")
    parts.append(answer.text[position:])
    sources = [
        f"[{numbers[found.passage.id]}] {_cited(answer, found.passage.id)}"
        for found in answer.passages
        if found.passage.id in numbers
    ]
    return "\n\n".join(["".join(parts), *sources])


def _numbers(answer: Answer) -> dict[str, int]:
    """The passages that were copied from, numbered as they were ranked."""
    copied = {span.passage_id for span in answer.spans}
    return {
        found.passage.id: rank
        for rank, found in enumerate(answer.passages, start=1)
        if found.passage.id in copied
    }  # fmt: skip


def _cited(answer: Answer, passage_id: str) -> str:
    passage = next(found.passage for found in answer.passages if found.passage.id == passage_id)
    page = f", page {passage.page}" if passage.page else ""
    text = " ".join(passage.text.split())
    quoted = text if len(text) <= QUOTED_CHARS else text[:QUOTED_CHARS].rsplit(" ", 1)[0] + " …"
    return f"{passage.source}{page}: “{quoted}”"


def conversation_markdown(conversation: Conversation) -> str:
    """The whole conversation: a heading for each question, each answer with its sources."""
    parts = [f"# {conversation.entry.title}"]
    for turn in conversation.turns:
        parts.append("## " + " ".join(turn.question.split()))
        parts.append(answer_markdown(turn.answer) if turn.answer is not None else "*(not answered)*")
    return "\n\n".join(parts) + "\n"
