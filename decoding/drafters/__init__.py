"""The drafters by name. A new method is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from decoding.drafter import Drafter
from decoding.drafters.crest import CrestDrafter
from decoding.drafters.llma import LlmaDrafter
from decoding.drafters.ngram_trie import NgramTrieDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.drafters.prompt_lookup import PromptLookupDrafter
from decoding.drafters.rest import RestDrafter
from decoding.drafters.suffix_tree import SuffixTreeDrafter
from indexes.crest import CrestStore
from indexes.errors import SettingError
from indexes.suffix_array import RestStore


@dataclass(frozen=True, slots=True)
class Resources:
    """What some drafters need beside the request; a drafter that needs what is not there says so.

    tokenizer_hash  names the target's tokenizer: a datastore made with another one is refused
    datastore       a folder made by `python app.py datastore build`
    """

    tokenizer_hash: str = ""
    datastore: Path | None = None


NOTHING = Resources()


def _stored(drafter: str, resources: Resources) -> tuple[Path, str]:
    """The datastore's folder and the tokenizer's hash. Raises SettingError if none was chosen."""
    if resources.datastore is None:
        raise SettingError(
            f"the drafter {drafter!r} needs a datastore: build one with `python app.py datastore build PATH... "
            f"--name NAME --kind {drafter}` and choose it with --datastore NAME"
        )
    return resources.datastore, resources.tokenizer_hash


DRAFTERS: dict[str, Callable[[Resources], Drafter]] = {
    "trie": lambda _: NgramTrieDrafter(),
    "llma": lambda _: LlmaDrafter(),
    "prompt-lookup": lambda _: PromptLookupDrafter(),
    "suffix": lambda _: SuffixTreeDrafter(),
    "rest": lambda resources: RestDrafter(RestStore(*_stored("rest", resources))),
    "crest": lambda resources: CrestDrafter(CrestStore(*_stored("crest", resources))),
    "plain": lambda _: PlainDrafter(),
}


def check_drafter(name: str, resources: Resources = NOTHING) -> None:
    """Raises SettingError for an unknown name, or a missing resource; opens nothing."""
    if name not in DRAFTERS:
        raise SettingError(f"unknown drafter {name!r}; choose one of {', '.join(DRAFTERS)}")
    if name in ("rest", "crest"):
        _stored(name, resources)


def make_drafter(name: str, resources: Resources = NOTHING) -> Drafter:
    """A new drafter with its paper's settings. Raises SettingError for an unknown name or a missing resource."""
    check_drafter(name, resources)
    return DRAFTERS[name](resources)
