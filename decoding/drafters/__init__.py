"""The drafters by name. A new method is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from decoding.drafter import Drafter
from decoding.drafters.llma import LlmaDrafter
from decoding.drafters.ngram_trie import NgramTrieDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.drafters.prompt_lookup import PromptLookupDrafter
from indexes.errors import SettingError


@dataclass(frozen=True, slots=True)
class Resources:
    """What some drafters need beside the request; a drafter that needs what is not there says so.

    tokenizer_hash  names the target's tokenizer: a datastore made with another one is refused
    datastore       a folder made by `python app.py datastore build`
    """

    tokenizer_hash: str = ""
    datastore: Path | None = None


NOTHING = Resources()

DRAFTERS: dict[str, Callable[[Resources], Drafter]] = {
    "trie": lambda _: NgramTrieDrafter(),
    "llma": lambda _: LlmaDrafter(),
    "prompt-lookup": lambda _: PromptLookupDrafter(),
    "plain": lambda _: PlainDrafter(),
}

CALIBRATED = frozenset({"blend"})  # those whose stated probabilities come true as often as they say


def make_drafter(name: str, resources: Resources = NOTHING) -> Drafter:
    """A new drafter with its paper's settings. Raises SettingError for an unknown name or a missing resource."""
    if name not in DRAFTERS:
        raise SettingError(f"unknown drafter {name!r}; choose one of {', '.join(DRAFTERS)}")
    return DRAFTERS[name](resources)
