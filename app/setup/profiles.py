"""Which models go together on which machine. Data only.

How many passages the prompt holds, and how long they are, belong here: a tiny model gets lost in long prompts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

LATE_INTERACTION = "late-interaction"
NO_RERANKER = "none"

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Profile:
    """One choice of models.

    reranker is a model id, "late-interaction" (over the encoder's token vectors) or "none"; history_turns is how many
    earlier turns the prompt holds; note is for people.
    """

    name: str
    model: str
    encoder: str
    reranker: str
    top_k: int
    chunk_chars: int
    history_turns: int
    note: str = ""

    def with_choices(self, **choices: Any) -> Profile:
        """A copy with every choice that is not None in place."""
        return replace(self, **{name: value for name, value in choices.items() if value is not None})


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "laptop",
            SMOLLM2,
            MINILM,
            LATE_INTERACTION,
            top_k=3,
            chunk_chars=600,
            history_turns=0,  # it would copy its last answer; follow-ups are understood by retrieval
            note="SmolLM2-135M is a tiny model: it shows how Quotewright works, quotes well and reasons badly. "
            "With a model hub in reach, --profile desktop (1.5B) or --profile gpu (7B) answers far better.",
        ),
        Profile(
            "desktop",
            "Qwen/Qwen2.5-1.5B-Instruct",
            MINILM,
            LATE_INTERACTION,
            top_k=5,
            chunk_chars=800,
            history_turns=3,
        ),
        Profile(
            "gpu",
            "Qwen/Qwen2.5-7B-Instruct",
            "BAAI/bge-m3",
            "BAAI/bge-reranker-v2-m3",
            top_k=5,
            chunk_chars=1000,
            history_turns=4,
        ),
    )
}
