"""From passages to an answer: prompt, references, the decode loop, and its events as text, spans and figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.answering.answers import Answer, Pass
from app.answering.asking import Task
from app.answering.ending import settle
from app.answering.prompt import Prompt, PromptWriter, fold
from app.answering.spans import Tracer, copied_fraction
from decoding.budget import NodeBudget
from decoding.drafter import Drafter, DraftRequest, Reference
from decoding.loop import DecodeRequest, Event, Finished, decode
from decoding.prefixes import KeptPrefixes
from decoding.sampling import GREEDY, Sampling
from decoding.target import TargetModel

REFERENCE_TURNS = 4  # how many earlier answers drafts may copy from
KINDS = {"question": "question", "assistant": "turn"}  # of references, by a message's role; else documents


@dataclass(frozen=True, slots=True)
class WritingSettings:
    """Limits and choices; history_turns is how many earlier turns the prompt holds."""

    max_new_tokens: int
    max_nodes: int
    history_turns: int
    min_span_words: int
    stop_repeats: bool
    sampling: Sampling = GREEDY


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes answers with one target model; one at a time, for the model holds one sequence."""

    target: TargetModel
    tokenizer: Any
    prompts: PromptWriter
    stop_tokens: frozenset[int]
    settings: WritingSettings
    prefixes: KeptPrefixes

    def write(
        self, task: Task, drafter: Drafter, budget: NodeBudget | None, similar: Sequence[str] = ()
    ) -> Iterator[Answer]:
        """Write the answer, yielding its state before the first and after each pass.

        What the task's person has had read before is not read again. `similar` are answers to similar questions, which
        drafts may copy from. Raises PromptTooLongError.
        """
        options = task.options
        limit = options.max_new_tokens or self.settings.max_new_tokens
        prompt = self._prompt(task, limit)
        answer = _without_what_was_left_out(task.state, prompt) if task.messages is None else task.state
        answer = replace(answer, stats=replace(answer.stats, prompt_tokens=len(prompt.tokens)))
        yield answer
        stop_repeats = self.settings.stop_repeats and task.messages is None
        text = AnswerText(answer, options.stop, stop_repeats, self.settings.min_span_words)
        draft = DraftRequest(prompt.tokens, references(self.prompts.encode, answer, task, similar))
        tokens: list[int] = []
        cached = self.prefixes.begin(task.person, prompt.tokens)
        most = self.settings.max_nodes if options.max_nodes is None else options.max_nodes
        sampling = options.sampling or self.settings.sampling
        request = DecodeRequest(draft, limit, self.stop_tokens, most, sampling, budget, cached)
        try:
            for event in decode(self.target, drafter, request, task.cancelled):
                answer = _with_event(answer, event, draft.references, task.start)
                answer = text.after(answer, self._decoded(tokens, event), task.start)
                yield answer
                if answer.finished:
                    return
        finally:
            self.prefixes.end(task.person, (*prompt.tokens, *tokens))

    def _prompt(self, task: Task, limit: int) -> Prompt:
        if task.messages is not None:
            return self.prompts.write_messages(task.messages)
        told = task.turns[max(0, len(task.turns) - self.settings.history_turns) :]
        texts = [found.passage.text for found in task.state.passages]
        return self.prompts.write(task.state.question, texts, told, limit)

    def _decoded(self, tokens: list[int], event: Event) -> str:
        """The text of all tokens; the event's are added to `tokens`."""
        if not isinstance(event, Finished):
            tokens.extend(event.tokens)
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))


class AnswerText:
    """Makes the text written so far into an answer's text, spans and figures; knows no model."""

    def __init__(self, answer: Answer, stop: Sequence[str], stop_repeats: bool, min_span_words: int) -> None:
        passages = [(found.passage.id, found.passage.text) for found in answer.passages]
        self._tracer = Tracer(passages, min_span_words)
        self._stop = stop
        self._stop_repeats = stop_repeats

    def after(self, answer: Answer, written: str, start: float) -> Answer:
        """The answer with the certain part of what is `written`; it ends here if its text says so."""
        text, ended = settle(written, self._stop, self._stop_repeats, final=answer.finished is not None)
        spans = tuple(self._tracer.spans(text))
        elapsed_s = time.perf_counter() - start
        stats = replace(answer.stats, copied_fraction=copied_fraction(text, spans), total_s=elapsed_s)
        return replace(answer, text=text, spans=spans, stats=stats, finished=ended or answer.finished)


def _with_event(answer: Answer, event: Event, copied_from: Sequence[Reference], start: float) -> Answer:
    """The answer with what an event says, its text apart."""
    if not isinstance(event, Finished):
        names = tuple(_source_name(source, copied_from) for source in event.sources)
        stats = answer.stats.after(event, time.perf_counter() - start)
        return replace(answer, stats=stats, passes=(*answer.passes, Pass(len(event.tokens), names)))
    notes = (f"the drafter was switched off: {event.drafter_error}",) if event.drafter_error else ()
    return replace(answer, finished=event.reason, notes=answer.notes + notes)


def references(
    encode: Callable[[str], tuple[int, ...]], answer: Answer, task: Task, similar: Sequence[str] = ()
) -> tuple[Reference, ...]:
    """What drafts may copy from: the passages as the prompt holds them, the question or the messages, earlier turns,
    and answers to similar questions that are none of those turns."""
    told = [turn.answer for turn in task.turns[-REFERENCE_TURNS:]]
    messages = task.messages or [{"role": "question", "content": answer.question}]
    told_as_messages = {item["content"] for item in messages}  # spans are found in them, too; drafts need them once
    return (
        *(
            Reference(encode(fold(found.passage.text)), "document", found.passage.id, found.score)
            for found in answer.passages
            if found.passage.text not in told_as_messages
        ),
        *(Reference(encode(item["content"]), KINDS.get(item["role"], "document")) for item in messages),
        *(Reference(encode(text), "turn") for text in told),
        *(Reference(encode(text), "answer") for text in similar if text not in told),
    )


def _source_name(source: int, copied_from: Sequence[Reference]) -> str:
    """What people call the reference with this index. Passages stand first among them, best first."""
    if not 0 <= source < len(copied_from):
        return "elsewhere"
    reference = copied_from[source]
    if reference.kind == "document":
        return f"passage {source + 1}" if reference.label else "messages"
    return {"question": "question", "turn": "earlier answer", "answer": "similar answer"}[reference.kind]


def _without_what_was_left_out(answer: Answer, prompt: Prompt) -> Answer:
    dropped = len(answer.passages) - prompt.passages
    if not dropped:
        return answer
    note = f"the prompt is too long for the model: the {dropped} lowest-ranked passage(s) were left out"
    return replace(answer, passages=answer.passages[: prompt.passages], notes=(*answer.notes, note))
