"""Question in, answer out: finds passages and has the answer written. The command line and the page share it.

Owns the models and the opened indexes. They load when first needed, once, and one answer is written at a time.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from app.answer_cache import AnswerCache
from app.answers import Answer, Stats
from app.kept_drafters import KeptDrafters, count_passages
from app.loading import Loaded, silent
from app.models import Say
from app.profiles import LATE_INTERACTION, NO_RERANKER
from app.prompt import Turn
from app.settings import Paths, Settings
from app.writing import AnswerWriter, WritingSettings
from decoding.acceptance import Acceptance
from decoding.budget import AdaptiveNodes, NodeBudget
from decoding.drafter import Drafter
from decoding.drafters import CALIBRATED, make_drafter
from decoding.drafters.blend import compile_blend
from decoding.loop import never
from decoding.prefixes import KeptPrefixes
from decoding.sampling import Sampling
from indexes.errors import DamagedIndexError, IndexStoreError, SettingError
from indexes.files import current_generation
from indexes.ngram_counts import NgramCounts
from indexes.store import IndexSettings, PassageIndex, open_index
from retrieval.retriever import Retriever

EVERYBODY = ""  # the namespace of shared answers; nobody's own
REUSABLE = ("stop", "length")  # how an answer ends that later ones may copy from
MOST_COUNTS = 4  # indexes whose n-grams are in memory


class Engine(Loaded):
    """Everything loaded for one choice of settings. Raises SettingError for choices that cannot be."""

    def __init__(self, settings: Settings, say: Say = silent, home: Paths | None = None) -> None:
        super().__init__(settings, say, home)
        self.sampling = Sampling(
            settings.temperature,
            settings.top_p,
            settings.sample_top_k,
            settings.min_p,
            settings.repetition_penalty,
            settings.seed,
        )
        self._writing = threading.Lock()
        self._indexes: dict[Path, PassageIndex] = {}
        self._budgets: dict[str, NodeBudget] = {}
        self._drafters = KeptDrafters(self._new_drafter)
        self._counts: dict[str, NgramCounts] = {}
        self._checked = False
        self._loaded = False

    @functools.cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(self.encoder.encode_questions)

    @functools.cached_property
    def _answer_writer(self) -> AnswerWriter:
        settings = WritingSettings(
            self.settings.max_new_tokens,
            self.max_nodes,
            self.profile.history_turns,
            self.settings.min_span_words,
            self.settings.stop_repeats,
            self.sampling,
        )
        return AnswerWriter(self.target, self.tokenizer, self.writer, self.stop_tokens, settings, self._prefixes)

    @functools.cached_property
    def _prefixes(self) -> KeptPrefixes:
        return KeptPrefixes(self.target, self.settings.prefix_cache_mb * 2**20)

    def node_budget(self, drafter: str) -> NodeBudget | None:
        """How many nodes of this drafter's drafts to verify; None: all, up to max_nodes.

        It learns from every answer: how long passes take, and how often what the drafter states comes true.
        Ask for it while no answer is being written: the first one may measure.
        """
        if self.settings.node_budget != "adaptive" or drafter == "plain" or self.max_nodes == 0:
            return None
        if drafter not in self._budgets:
            self._budgets[drafter] = AdaptiveNodes(self.verify_times, Acceptance(drafter in CALIBRATED))
        return self._budgets[drafter]

    def _check_verify_times(self) -> None:
        """Measure again, once, what a busy machine disturbed: drafting would look too dear for ever."""
        if not self._checked and "verify_times" in vars(self) and self.verify_times.disturbed:
            self._checked = True
            self.forget_verify_times()
            self._budgets.clear()

    def load(self) -> None:
        """Load every model and compile what is compiled now, so that the first question does not wait."""
        with self._loading:
            if not self._loaded:
                self._say(
                    f"Loading {self.profile.model} and {self.profile.encoder} on {self.device} in {self.dtype_name}"
                )
                self._load()
        if "verify_times" not in vars(self):  # no answer is begun before, so nobody waits for one here
            with self._writing:
                self.node_budget(self.settings.drafter)

    def _load(self) -> None:
        """Load and compile. What is compiled already is only loaded."""
        notice = threading.Timer(10, self._say, ["Compiling what is fast (once on this machine, about a minute)"])
        notice.start()
        try:
            _ = self.encoder, self.writer, self.stop_tokens, self.resources(self.settings.drafter)
            if self.profile.reranker not in (LATE_INTERACTION, NO_RERANKER):
                _ = self.cross_encoder
            if self.settings.drafter == "blend":
                compile_blend()
            self._loaded = True
        finally:
            notice.cancel()

    def _new_drafter(self, name: str, folder: Path) -> Drafter:
        """A drafter with what it needs; blend knows the n-grams of the whole index."""
        resources = self.resources(name)
        if resources.table is not None:
            index = self.open(folder)
            if index.digest not in self._counts:
                self._counts[index.digest] = count_passages(index.passages, self.writer.encode, len(resources.table))
                while len(self._counts) > MOST_COUNTS:
                    del self._counts[next(iter(self._counts))]
            resources = replace(resources, passages=self._counts[index.digest])
        return make_drafter(name, resources)

    # Indexes

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
        remedy = f"build it with: python app.py index PATH... --name {folder.name}"
        with self._loading:
            try:
                known = self._indexes.get(folder)
                _, digest = current_generation(folder)
                index = known if known and known.digest == digest else open_index(folder)
            except DamagedIndexError as error:
                again = f"rebuild it with: python app.py index --rebuild --name {folder.name}"
                raise DamagedIndexError(f"{error}; {again}") from error
            except IndexStoreError as error:
                raise IndexStoreError(f"{error}; {remedy}") from error
            self._indexes[folder] = index
        if index.settings.encoder != self.profile.encoder:
            raise IndexStoreError(
                f"index {folder.name!r} was made with the encoder {index.settings.encoder}, "
                f"not {self.profile.encoder}; "
                f"rebuild it with: python app.py index --rebuild --name {folder.name} --encoder {self.profile.encoder}"
            )
        return index

    def retriever(self, index: PassageIndex) -> Retriever:
        """A retriever over an opened index."""
        from retrieval.rerankers import LateInteractionReranker

        reranker = {
            LATE_INTERACTION: lambda: LateInteractionReranker(self.encoder, index.tokens, index.postings),
            NO_RERANKER: lambda: None,
        }.get(self.profile.reranker, lambda: self.cross_encoder)()
        return Retriever(
            self.encoder, index.vectors, index.postings, index.passages.get, reranker, self.settings.candidates
        )

    # Answers

    def ask(
        self,
        question: str,
        folder: Path,
        turns: Sequence[Turn] = (),
        drafter: str | None = None,
        max_new_tokens: int | None = None,
        cancelled: Callable[[], bool] = never,
        person: str | None = None,
    ) -> Iterator[Answer]:
        """Answer from the index in `folder`, yielding the answer's state: passages first, then after each pass.

        `person` says whose earlier answers drafts may copy from and learn from, and who may copy from this one;
        None: nobody's.
        Raises QuotewrightError for a question or setting that cannot be used.
        """
        question = question.encode("utf-8", "replace").decode("utf-8").strip()
        if not question:
            raise SettingError("the question is empty; ask something")
        start = time.perf_counter()
        self.load()
        with self._writing:
            index = self.open(folder)
            earlier = turns[-1].question if turns else None
            found = tuple(self.retriever(index).retrieve(question, self.profile.top_k, earlier))
            drafter = drafter or self.settings.drafter
            stats = Stats(drafter, retrieval_s=time.perf_counter() - start)
            budget, guessing = self.node_budget(drafter), self._drafters.take(person, folder, drafter)
            state = Answer(question, found, stats)
            namespace = self._namespace(person, folder)
            similar = self._answers.similar(namespace, question) if namespace is not None else []
            writing = self._answer_writer.write(
                state, turns, guessing, budget, similar, max_new_tokens, cancelled, start, person
            )
            try:
                for state in writing:
                    yield state
            finally:  # whoever asks stops reading, or the question is refused: what was learned before is kept
                self._drafters.put_back(person, folder, drafter, guessing)
                self._check_verify_times()
            if namespace is not None and state.finished in REUSABLE:
                self._answers.add(namespace, question, state.text)

    def _namespace(self, person: str | None, folder: Path) -> str | None:
        """Where a person's answers are kept. Those from a private index are never shared."""
        if person is not None and self.settings.share_answers and folder.parent == self.paths.indexes:
            return EVERYBODY
        return person or None

    def forget(self, person: str) -> None:
        """Drop the answers kept for a person who has gone, and what was learned from them."""
        self._drafters.forget(person)
        if "_prefixes" in vars(self):
            with self._writing:
                self._prefixes.forget(person)
        if person and "_answers" in vars(self):
            self._answers.forget(person)
