"""The drafters by name. A new method is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable

from decoding.drafter import Drafter
from decoding.drafters.llma import LlmaDrafter
from decoding.drafters.ngram_trie import NgramTrieDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.drafters.prompt_lookup import PromptLookupDrafter
from indexes.errors import SettingError

DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "trie": NgramTrieDrafter,
    "llma": LlmaDrafter,
    "prompt-lookup": PromptLookupDrafter,
    "plain": PlainDrafter,
}


def make_drafter(name: str) -> Drafter:
    """A new drafter with its paper's settings. Raises SettingError for an unknown name."""
    if name not in DRAFTERS:
        raise SettingError(f"unknown drafter {name!r}; choose one of {', '.join(DRAFTERS)}")
    return DRAFTERS[name]()
