"""What tests of single drafters share: small alphabets, so that matches are frequent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from hypothesis import strategies as st

from decoding.drafter import Drafter, DraftRequest, Reference
from decoding.drafters import DRAFTERS, Resources, make_drafter
from indexes.crest_build import build_crest
from indexes.suffix_array import build_rest
from tests.decoding.scripted import RuledDraftModel

D = TypeVar("D", bound=Drafter)

HASH = "the tiny vocabulary's tokenizer"
STORED = [(0, 3, 4, 0, 3, 0, 4, 4, 0, 3, 4, 5), (3, 3, 0, 3, 3, 4, 63, 62), (4, 4, 4), (0,)]  # neither 1 nor 2

_folder = TemporaryDirectory(prefix="quotewright-tests-")  # removed when the tests end
STORES = {"crest": Path(_folder.name, "crest"), "rest": Path(_folder.name, "rest")}
build_crest(STORES["crest"], STORED, HASH, 64)
build_rest(STORES["rest"], STORED, HASH, 64)

RESOURCES = Resources(tokenizer_hash=HASH, draft_model=RuledDraftModel())
MAKERS: dict[str, Callable[[], Drafter]] = {
    name: partial(make_drafter, name, replace(RESOURCES, datastore=STORES.get(name))) for name in DRAFTERS
}

# These learn from the target's outputs or ask a model, and do not copy from references.
NOT_COPYING = frozenset({"token-recycling", "lookahead", "draft-model", "ouroboros"})
# These keep phrases from answer to answer.
WARM = frozenset({"ouroboros", "blend"})

TOKENS = st.lists(st.integers(0, 3), max_size=25).map(tuple)
REFERENCES = st.lists(TOKENS, max_size=4)
CONTEXT = st.lists(st.integers(0, 4), min_size=1, max_size=15).map(tuple)


def request(references: Sequence[Sequence[int]], prompt: Sequence[int] = ()) -> DraftRequest:
    return DraftRequest(tuple(prompt), tuple(Reference(tuple(tokens)) for tokens in references))


def started(drafter: D, references: Sequence[Sequence[int]], prompt: Sequence[int] = ()) -> D:
    drafter.start(request(references, prompt))
    return drafter
