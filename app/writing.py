"""From passages to an answer: prompt, references, the decode loop, and its events as text, spans and figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.answers import Answer
from app.prompt import Prompt, PromptWriter, Turn, fold
from app.repetition import repetition_start
from app.spans import Tracer, copied_fraction
from decoding.budget import NodeBudget
from decoding.drafter import Drafter, DraftRequest, Reference
from decoding.loop import DecodeRequest, Event, Finished, decode
from decoding.prefixes import KeptPrefixes
from decoding.sampling import GREEDY, Sampling
from decoding.target import TargetModel

REFERENCE_TURNS = 4  # how many earlier answers drafts may copy from


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
        self,
        answer: Answer,
        turns: Sequence[Turn],
        drafter: Drafter,
        budget: NodeBudget | None,
        similar: Sequence[str],
        max_new_tokens: int | None,
        cancelled: Callable[[], bool],
        start: float,
        person: str | None = None,
    ) -> Iterator[Answer]:
        """Write the answer from the passages in it, yielding its state before the first and after each pass.

        What this `person` has had read before is not read again. `similar` are answers to similar questions, which
        drafts may copy from. `start` is when the question came, on time.perf_counter's clock.
        """
        limit = max_new_tokens or self.settings.max_new_tokens
        told = turns[max(0, len(turns) - self.settings.history_turns) :]
        texts = [found.passage.text for found in answer.passages]
        prompt = self.prompts.write(answer.question, texts, told, limit)
        answer = _without_what_was_left_out(answer, prompt)
        yield answer
        passages = [(found.passage.id, found.passage.text) for found in answer.passages]
        tracer = Tracer(passages, self.settings.min_span_words)
        draft = DraftRequest(prompt.tokens, references(self.prompts.encode, answer, turns, similar))
        tokens: list[int] = []
        cached = self.prefixes.begin(person, prompt.tokens)
        request = DecodeRequest(
            draft, limit, self.stop_tokens, self.settings.max_nodes, self.settings.sampling, budget, cached
        )
        try:
            for event in decode(self.target, drafter, request, cancelled):
                answer = self._after(answer, event, tokens, tracer, time.perf_counter() - start)
                yield answer
                if answer.finished:
                    return
        finally:
            self.prefixes.end(person, (*prompt.tokens, *tokens))

    def _after(self, answer: Answer, event: Event, tokens: list[int], tracer: Tracer, elapsed_s: float) -> Answer:
        """The answer's state after one more event; the event's tokens are added to `tokens`."""
        stats = answer.stats
        if isinstance(event, Finished):
            notes = (f"the drafter was switched off: {event.drafter_error}",) if event.drafter_error else ()
            answer = replace(answer, finished=event.reason, notes=answer.notes + notes)
        else:
            tokens.extend(event.tokens)
            stats = stats.after(event, elapsed_s)
        text = self._text(tokens, final=answer.finished is not None)
        if self.settings.stop_repeats and (repeated := repetition_start(text)) is not None:
            text = text[:repeated].rstrip()
            answer = replace(answer, finished="repetition")
        spans = tuple(tracer.spans(text))
        stats = replace(stats, copied_fraction=copied_fraction(text, spans), total_s=elapsed_s)
        return replace(answer, text=text, spans=spans, stats=stats)

    def _text(self, tokens: list[int], final: bool) -> str:
        """The text of tokens; while more may come, without a character that is not complete yet."""
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False).lstrip()
        return text.rstrip() if final else text.rstrip("\ufffd")


def references(
    encode: Callable[[str], tuple[int, ...]], answer: Answer, turns: Sequence[Turn], similar: Sequence[str] = ()
) -> tuple[Reference, ...]:
    """What drafts may copy from: the passages as the prompt holds them, the question, earlier turns, and answers to
    similar questions that are none of those turns."""
    told = [turn.answer for turn in turns[-REFERENCE_TURNS:]]
    return (
        *(
            Reference(encode(fold(found.passage.text)), "document", found.passage.id, found.score)
            for found in answer.passages
        ),
        Reference(encode(answer.question), "question"),
        *(Reference(encode(text), "turn") for text in told),
        *(Reference(encode(text), "answer") for text in similar if text not in told),
    )


def _without_what_was_left_out(answer: Answer, prompt: Prompt) -> Answer:
    dropped = len(answer.passages) - prompt.passages
    stats = replace(answer.stats, prompt_tokens=len(prompt.tokens))
    if not dropped:
        return replace(answer, stats=stats)
    note = f"the prompt is too long for the model: the {dropped} lowest-ranked passage(s) were left out"
    kept = answer.passages[: prompt.passages]
    return replace(answer, stats=stats, passages=kept, notes=(*answer.notes, note))
