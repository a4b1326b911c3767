"""What the engine tells of an answer: the state of it after each forward pass, with its figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from app.answering.spans import Span
from decoding.loop import Step
from retrieval.conversation import NOTHING_FOUND
from retrieval.finder import Found


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of one answer.

    new_tokens counts a stop token too, forward_passes the prefill too. accept_length is tokens emitted per
    forward pass after the prefill, and tokens_per_s those tokens per second of those passes: plain decoding has
    an accept length of 1.00. Where another server writes, forward_passes is 0: they are unknown. Times are in
    seconds from the question on, retrieval and prefill included.
    """

    drafter: str
    prompt_tokens: int = 0
    new_tokens: int = 0
    forward_passes: int = 0
    draft_nodes: int = 0
    copied_fraction: float = 0.0
    retrieval_s: float = 0.0
    time_to_first_token_s: float = 0.0
    decode_s: float = 0.0
    total_s: float = 0.0

    @property
    def accept_length(self) -> float:
        """Tokens per forward pass, prefill apart; 1.0 before the first."""
        return (self.new_tokens - 1) / (self.forward_passes - 1) if self.forward_passes > 1 else 1.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens after the first per second after the first; 0.0 for an answer of one token."""
        return (self.new_tokens - 1) / self.decode_s if self.decode_s > 0 else 0.0

    def after(self, step: Step, elapsed_s: float) -> Stats:
        """The figures with one more forward pass in them."""
        first = self.forward_passes == 0
        return replace(
            self,
            new_tokens=self.new_tokens + len(step.tokens),
            forward_passes=self.forward_passes + 1,
            draft_nodes=self.draft_nodes + step.nodes,
            time_to_first_token_s=elapsed_s if first else self.time_to_first_token_s,
            decode_s=self.decode_s + (0.0 if first else step.duration_s),
        )

    def line(self) -> str:
        """The one line of figures under an answer; another server's forward passes are not known."""
        accepted = f"accept length {self.accept_length:.2f} " if self.forward_passes else ""
        return (
            f"{self.tokens_per_s:.1f} tokens/s · {accepted}({self.drafter}) · "
            f"{self.copied_fraction:.0%} stands in the passages · "
            f"first token after {self.time_to_first_token_s:.2f} s · {self.new_tokens} tokens in {self.total_s:.2f} s"
        )

    def to_json(self) -> dict[str, Any]:
        """All figures as plain values."""
        fields = asdict(self) | {"accept_length": self.accept_length, "tokens_per_s": self.tokens_per_s}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in fields.items()}


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: how many tokens it emitted, and where each accepted drafted one among them was copied from.

    A source is "passage 1" (the best-ranked), "question", "messages", "earlier answer", "similar answer", or
    "elsewhere": the answer itself, phrases seen before, the model's own guesses.
    """

    tokens: int
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as far as it is written. `passages` are those in the prompt, best first; `passes` are those so far.

    finished says why it ended: "stop", "length" (token limit), "context" (context limit), "cancelled",
    "repetition" (it began to repeat itself), "nothing-found" (no passage is about the question); None while it is
    being written.
    notes are for people: what had to be left out, what was switched off.
    """

    question: str
    passages: tuple[Found, ...]
    stats: Stats
    text: str = ""
    spans: tuple[Span, ...] = ()
    finished: str | None = None
    notes: tuple[str, ...] = ()
    passes: tuple[Pass, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object that `ask --json` prints."""
        passages = [
            {
                "id": found.passage.id,
                "source": found.passage.source,
                "page": found.passage.page,
                "start": found.passage.start,
                "score": round(found.score, 4),
                "relevance": None if found.relevance is None else round(found.relevance, 4),
                "text": found.passage.text,
            }
            for found in self.passages
        ]
        return {
            "question": self.question,
            "answer": self.text,
            "passages": passages,
            "spans": [span.to_json() for span in self.spans],
            "stats": self.stats.to_json(),
            "finished": self.finished,
            "notes": list(self.notes),
        }


def without_an_answer(answer: Answer, min_relevance: float) -> Answer | None:
    """The answer that the documents do not say it; None where a passage may be about the question.

    A passage that nobody judged may be.
    """
    if any(found.relevance is None or found.relevance >= min_relevance for found in answer.passages):
        return None
    listed = "; the closest passages are listed" if answer.passages else ""
    note = f"nothing relevant was found{listed}"
    return replace(answer, text=NOTHING_FOUND, finished="nothing-found", notes=(*answer.notes, note))
