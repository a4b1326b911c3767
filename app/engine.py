"""Question in, answer out: finds passages and has the answer written. The command line and the page share it.

Owns the models and the opened indexes. They load when first needed, once, and one answer is written at a time.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.answer_cache import AnswerCache
from app.answers import Answer, Stats
from app.datastores import datastore_folder
from app.devices import choose_device, choose_dtype, default_max_nodes
from app.models import Say, resolve_model
from app.profiles import LATE_INTERACTION, NO_RERANKER
from app.prompt import PromptWriter, Turn
from app.settings import Paths, Settings, paths
from app.verify_costs import costs_key, load_costs
from app.writing import AnswerWriter, WritingSettings
from decoding.acceptance import Acceptance
from decoding.blend.token_table import TokenTable, read_table
from decoding.budget import AdaptiveNodes, NodeBudget
from decoding.drafters import CALIBRATED, NEEDS_DRAFT_MODEL, Resources, check_drafter
from decoding.loop import never
from decoding.sampling import Sampling
from decoding.tokenizer_hash import tokenizer_hash
from decoding.verify_costs import VerifyTimes
from indexes.errors import DamagedIndexError, IndexStoreError, ModelError, SettingError
from indexes.files import current_generation
from indexes.store import IndexSettings, PassageIndex, open_index
from retrieval.retriever import Retriever

if TYPE_CHECKING:
    from decoding.draft_model import DraftModel
    from decoding.hf_target import HuggingFaceTarget
    from retrieval.encoders import Encoder
    from retrieval.rerankers import CrossEncoderReranker


EVERYBODY = ""  # the namespace of shared answers; nobody's own
REUSABLE = ("stop", "length")  # how an answer ends that later ones may copy from


def silent(_: str) -> None:
    """The default for `say`."""


def _load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # a broken file raises whatever its parser does
        raise ModelError(f"no tokenizer could be loaded from {folder}: {error}") from error


class Engine:
    """Everything loaded for one choice of settings. Raises SettingError for choices that cannot be."""

    def __init__(self, settings: Settings, say: Say = silent, home: Paths | None = None) -> None:
        self.settings = settings
        self.sampling = Sampling(
            settings.temperature,
            settings.top_p,
            settings.sample_top_k,
            settings.min_p,
            settings.repetition_penalty,
            settings.seed,
        )
        self.profile = settings.resolved()
        self.paths = home or paths()
        self._datastore = datastore_folder(self.paths, settings.datastore)
        # an unknown name is refused now, not after the models are loaded
        check_drafter(settings.drafter, Resources(datastore=self._datastore), settings.draft_model is not None)
        self.device = choose_device(settings.device)
        self.dtype = choose_dtype(settings.dtype, self.device)
        self.adaptive = settings.node_budget == "adaptive"
        default = default_max_nodes(self.device, self.adaptive)
        self.max_nodes = default if settings.max_nodes is None else settings.max_nodes
        self._say = say
        self._loading = threading.RLock()
        self._writing = threading.Lock()
        self._indexes: dict[Path, PassageIndex] = {}
        self._budgets: dict[str, NodeBudget] = {}

    # What is loaded when first needed. The lock makes it once, whoever asks first.

    def _resolve(self, model_id: str) -> Path:
        return resolve_model(model_id, self.paths.models, self._say)

    @functools.cached_property
    def encoder(self) -> Encoder:
        """The encoder of questions and passages."""
        from retrieval.encoders import load_encoder

        return load_encoder(self.profile.encoder, self._resolve(self.profile.encoder), self.device)

    @functools.cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(self.encoder.encode_questions)

    @functools.cached_property
    def _cross_encoder(self) -> CrossEncoderReranker:
        from retrieval.rerankers import CrossEncoderReranker

        return CrossEncoderReranker(self._resolve(self.profile.reranker), self.device)

    @functools.cached_property
    def model_folder(self) -> Path:
        """The folder of the target model's files."""
        return self._resolve(self.profile.model)

    @functools.cached_property
    def tokenizer(self) -> Any:
        """The target model's tokenizer."""
        return _load_tokenizer(self.model_folder)

    @functools.cached_property
    def target(self) -> HuggingFaceTarget:
        """The target model."""
        from decoding.hf_target import HuggingFaceTarget, load_hf_model

        return HuggingFaceTarget(load_hf_model(self.model_folder, self.device, self.dtype))

    @functools.cached_property
    def draft_model(self) -> DraftModel:
        """The small model of some drafters. Raises SettingError if its vocabulary is not the target model's."""
        from decoding.causal_draft_model import CausalDraftModel
        from decoding.draft_model import check_same_vocabulary
        from decoding.hf_target import HuggingFaceTarget, load_hf_model

        name = self.settings.draft_model or ""
        folder = self._resolve(name)
        check_same_vocabulary(self.profile.model, self.tokenizer, name, _load_tokenizer(folder))
        return CausalDraftModel(HuggingFaceTarget(load_hf_model(folder, self.device, self.dtype)))

    @functools.cached_property
    def _token_table(self) -> TokenTable:
        return read_table(self.tokenizer, self.target.vocabulary)

    @functools.cached_property
    def _tokenizer_hash(self) -> str:
        return tokenizer_hash(self.tokenizer)

    def resources(self, drafter: str) -> Resources:
        """What the drafter of that name needs; a draft model is loaded only for one that does."""
        needed = drafter in NEEDS_DRAFT_MODEL and self.settings.draft_model
        return Resources(
            self._tokenizer_hash if self._datastore else "",
            self._datastore,
            self.draft_model if needed else None,
            self._token_table if drafter == "blend" else None,
        )

    @functools.cached_property
    def writer(self) -> PromptWriter:
        """Writes prompts for the target model."""
        return PromptWriter(self.tokenizer, self.target.context_limit)

    @functools.cached_property
    def stop_tokens(self) -> frozenset[int]:
        """The tokens that end an answer."""
        return self.target.stop_tokens | {self.tokenizer.eos_token_id}

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
        return AnswerWriter(self.target, self.tokenizer, self.writer, self.stop_tokens, settings, self.resources)

    @functools.cached_property
    def _verify_times(self) -> VerifyTimes:
        """What verifying costs; measured at most once, with the target's cache for itself: ask for it while no answer
        is being written."""
        key = costs_key(
            self.profile.model, self.model_folder, self.target, self.device, self.dtype_name, self.max_nodes
        )
        return VerifyTimes(load_costs(self.paths.verify_costs, key, self.target, self._say))

    def node_budget(self, drafter: str) -> NodeBudget | None:
        """How many nodes of this drafter's drafts to verify; None: all, up to max_nodes.

        It learns from every answer: how long passes take, and how often what the drafter states comes true.
        Ask for it while no answer is being written: the first one may measure.
        """
        if not self.adaptive or drafter == "plain" or self.max_nodes == 0:
            return None
        if drafter not in self._budgets:
            self._budgets[drafter] = AdaptiveNodes(self._verify_times, Acceptance(drafter in CALIBRATED))
        return self._budgets[drafter]

    def load(self) -> None:
        """Load every model now, so that the first question does not wait."""
        with self._loading:
            if "target" not in vars(self):
                self._say(
                    f"Loading {self.profile.model} and {self.profile.encoder} on {self.device} in {self.dtype_name}"
                )
            _ = self.encoder, self.writer, self.stop_tokens, self.resources(self.settings.drafter)
            if self.profile.reranker not in (LATE_INTERACTION, NO_RERANKER):
                _ = self._cross_encoder
        if "_verify_times" not in vars(self):  # no answer is begun before, so nobody waits for one here
            with self._writing:
                self.node_budget(self.settings.drafter)

    @property
    def dtype_name(self) -> str:
        """The target model's number format, as in settings."""
        return str(self.dtype).removeprefix("torch.")

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
        }.get(self.profile.reranker, lambda: self._cross_encoder)()
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

        `person` says whose earlier answers to similar questions drafts may copy from, and who may copy from this
        one; None: nobody's.
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
            budget = self.node_budget(drafter)
            state = Answer(question, found, stats)
            namespace = self._namespace(person, folder)
            similar = self._answers.similar(namespace, question) if namespace is not None else []
            writing = self._answer_writer.write(state, turns, max_new_tokens, budget, similar, cancelled, start)
            for state in writing:
                yield state
            if namespace is not None and state.finished in REUSABLE:
                self._answers.add(namespace, question, state.text)

    def _namespace(self, person: str | None, folder: Path) -> str | None:
        """Where a person's answers are kept. Those from a private index are never shared."""
        if person is not None and self.settings.share_answers and folder.parent == self.paths.indexes:
            return EVERYBODY
        return person or None

    def forget(self, person: str) -> None:
        """Drop the answers kept for a person who has gone."""
        if person and "_answers" in vars(self):
            self._answers.forget(person)
