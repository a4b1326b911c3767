"""The indexes that answers are given from: opened once per generation, and searched.

Says nothing about answers or drafts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from app.answering.loading import Loaded, silent
from app.commands.remedies import again, saying_what_to_do
from app.setup.models import Say
from app.setup.profiles import LATE_INTERACTION, NO_RERANKER
from app.setup.settings import Paths, Settings
from indexes.errors import IndexStoreError, SettingError
from indexes.files import current_generation
from indexes.store import IndexSettings, PassageIndex, open_index
from retrieval.conversation import Turn
from retrieval.finder import Finder, Found
from retrieval.relevance import judge_of
from retrieval.retriever import Retriever


class Library(Loaded):
    """What is loaded, with the opened indexes. Raises SettingError for choices that cannot be."""

    def __init__(self, settings: Settings, say: Say = silent, home: Paths | None = None) -> None:
        super().__init__(settings, say, home)
        self._finding = threading.Lock()
        self._indexes: dict[Path, PassageIndex] = {}

    def index_settings(self, roots: Sequence[str] = ()) -> IndexSettings:
        """What an index made now would be built with."""
        return IndexSettings(
            self.encoder.id,
            self.encoder.dimension,
            self.profile.chunk_chars,
            self.profile.reranker == LATE_INTERACTION,
            tuple(roots),
        )

    def open(self, folder: Path) -> PassageIndex:
        """The index in `folder`, opened once per generation.

        Raises IndexStoreError or DamagedIndexError with the command that makes it anew.
        """
        private = self.paths.uploads in folder.parents
        with self._loading:
            known = self._indexes.get(folder)
            with saying_what_to_do(folder, private):
                _, digest = current_generation(folder)
                same = known is not None and known.digest == digest
                index = known if known and same else open_index(folder, known, again(folder, private))
            self._indexes[folder] = index
        choice = "" if private else f" --encoder {self.profile.encoder}"
        made_with, dimension = index.settings.encoder, index.settings.dimension
        if made_with != self.profile.encoder:
            raise IndexStoreError(
                f"index {folder.name!r} was made with the encoder {made_with}, not {self.profile.encoder}; "
                f"{again(folder, private)}{choice}"
            )
        if dimension != self.encoder.dimension:
            raise IndexStoreError(
                f"index {folder.name!r} holds vectors of {dimension} dimensions, and {made_with} makes "
                f"{self.encoder.dimension}; {again(folder, private)}{choice}"
            )
        return index

    def let_go(self, folder: Path) -> None:
        """Keep an index that was removed no longer open."""
        with self._loading:
            self._indexes.pop(folder, None)

    def retriever(self, index: PassageIndex) -> Retriever:
        """A retriever over an opened index."""
        from retrieval.rerankers import LateInteractionReranker

        reranker = {
            LATE_INTERACTION: lambda: LateInteractionReranker(self.encoder, index.tokens, index.postings),
            NO_RERANKER: lambda: None,
        }.get(self.profile.reranker, lambda: self.cross_encoder)()
        judge = judge_of(self.encoder, index) if self.profile.reranker == LATE_INTERACTION else None
        candidates = self.settings.candidates
        return Retriever(self.encoder, index.vectors, index.postings, index.passages.get, reranker, candidates, judge)

    def find(
        self, question: str, source: Path | Finder, top_k: int | None = None, turns: Sequence[Turn] = ()
    ) -> list[Found]:
        """The passages for a question, best first, from an index's folder or anybody's finder. Any thread may ask.

        Raises SettingError for an empty question, IndexStoreError.
        """
        question = asked(question)
        count = self.profile.top_k if top_k is None else top_k
        if not isinstance(source, Path):  # not locked: it may wait for a machine elsewhere, or ask this engine itself
            return source.find(question, count, turns)
        finder = self.retriever(self.open(source))
        with self._finding:
            return finder.find(question, count, turns)


def asked(question: str) -> str:
    """A question as it can be stored and shown. Raises SettingError for an empty one."""
    question = question.encode("utf-8", "replace").decode("utf-8").strip()
    if not question:
        raise SettingError("the question is empty; ask something")
    return question
