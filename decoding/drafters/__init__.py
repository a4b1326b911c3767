"""The drafters by name. A new method is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from decoding.blend.token_table import TokenTable
from decoding.draft_model import DraftModel
from decoding.drafter import Drafter
from decoding.drafters.blend import BlendDrafter
from decoding.drafters.crest import CrestDrafter
from decoding.drafters.draft_model import DraftModelDrafter
from decoding.drafters.llma import LlmaDrafter
from decoding.drafters.lookahead import LookaheadDrafter
from decoding.drafters.ngram_trie import NgramTrieDrafter
from decoding.drafters.ouroboros import OuroborosDrafter
from decoding.drafters.plain import PlainDrafter
from decoding.drafters.prompt_lookup import PromptLookupDrafter
from decoding.drafters.rest import RestDrafter
from decoding.drafters.suffix_tree import SuffixTreeDrafter
from decoding.drafters.token_recycling import TokenRecyclingDrafter
from indexes.crest import CrestStore
from indexes.errors import SettingError
from indexes.ngram_counts import NgramCounts
from indexes.suffix_array import RestStore


@dataclass(frozen=True, slots=True)
class Resources:
    """What some drafters need beside the request; a drafter that needs what is not there says so.

    tokenizer_hash  names the target's tokenizer: a datastore made with another one is refused
    datastore       a folder made by `python app.py datastore build`
    draft_model     a smaller model with the target's vocabulary
    table           what is known of the spelling of tokens
    passages        which tokens follow which in all texts that answers are given from
    """

    tokenizer_hash: str = ""
    datastore: Path | None = None
    draft_model: DraftModel | None = None
    table: TokenTable | None = None
    passages: NgramCounts | None = None


NOTHING = Resources()


def _stored(drafter: str, resources: Resources) -> tuple[Path, str]:
    """The datastore's folder and the tokenizer's hash. Raises SettingError if none was chosen."""
    if resources.datastore is None:
        raise SettingError(
            f"the drafter {drafter!r} needs a datastore: build one with `python app.py datastore build PATH... "
            f"--name NAME --kind {drafter}` and choose it with --datastore NAME"
        )
    return resources.datastore, resources.tokenizer_hash


NEEDS_DRAFT_MODEL = frozenset({"draft-model", "ouroboros"})


def _draft_model(resources: Resources) -> DraftModel:
    assert resources.draft_model is not None  # check_drafter has seen to it
    return resources.draft_model


DRAFTERS: dict[str, Callable[[Resources], Drafter]] = {
    "blend": lambda resources: BlendDrafter(resources.table, resources.passages),
    "trie": lambda _: NgramTrieDrafter(),
    "llma": lambda _: LlmaDrafter(),
    "prompt-lookup": lambda _: PromptLookupDrafter(),
    "suffix": lambda _: SuffixTreeDrafter(),
    "rest": lambda resources: RestDrafter(RestStore(*_stored("rest", resources))),
    "crest": lambda resources: CrestDrafter(CrestStore(*_stored("crest", resources))),
    "token-recycling": lambda _: TokenRecyclingDrafter(),
    "lookahead": lambda _: LookaheadDrafter(),
    "draft-model": lambda resources: DraftModelDrafter(_draft_model(resources)),
    "ouroboros": lambda resources: OuroborosDrafter(_draft_model(resources)),
    "plain": lambda _: PlainDrafter(),
}

LEARNING = frozenset({"blend", "token-recycling", "ouroboros"})  # those that learn from answer to answer
CALIBRATED = frozenset({"blend"})  # those whose stated probabilities come true as often as they say


def check_drafter(name: str, resources: Resources = NOTHING, draft_model: bool = False) -> None:
    """Refuse at once what could only fail after models are loaded; opens nothing.

    `draft_model` says whether one will be there. Raises SettingError for an unknown name or a missing resource.
    """
    if name not in DRAFTERS:
        raise SettingError(f"unknown drafter {name!r}; choose one of {', '.join(DRAFTERS)}")
    if name in ("rest", "crest"):
        _stored(name, resources)
    if name in NEEDS_DRAFT_MODEL and not draft_model:
        raise SettingError(
            f"the drafter {name!r} needs a draft model; give a smaller model with the same vocabulary: --draft-model ID"
        )


def make_drafter(name: str, resources: Resources = NOTHING) -> Drafter:
    """A new drafter with its paper's settings. Raises SettingError for an unknown name or a missing resource."""
    check_drafter(name, resources, resources.draft_model is not None)
    return DRAFTERS[name](resources)
