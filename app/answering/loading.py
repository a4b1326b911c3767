"""What one choice of settings needs in memory: models, tokenizers, measured times; each loaded when first needed.

Says nothing about questions, indexes or drafts.
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.answering.prompt import PromptWriter
from app.answering.verify_costs import Key, costs_key, forget_costs, load_costs
from app.documents.datastores import datastore_folder
from app.setup.devices import choose_device, choose_dtype, default_max_nodes
from app.setup.models import Say, resolve_model
from app.setup.settings import Paths, Settings, paths
from decoding.blend.token_table import TokenTable, read_table
from decoding.drafters import NEEDS_DRAFT_MODEL, Resources, check_drafter
from decoding.tokenizer_hash import tokenizer_hash
from decoding.verify_costs import VerifyTimes
from indexes.errors import ModelError

if TYPE_CHECKING:
    from decoding.draft_model import DraftModel
    from decoding.target import TargetModel
    from retrieval.encoders import Encoder
    from retrieval.rerankers import CrossEncoderReranker


def silent(_: str) -> None:
    """The default for `say`."""


def _load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # a broken file raises whatever its parser does
        raise ModelError(f"no tokenizer could be loaded from {folder}: {error}") from error


class Loaded:
    """Everything loaded for one choice of settings. Raises SettingError for choices that cannot be."""

    def __init__(self, settings: Settings, say: Say = silent, home: Paths | None = None) -> None:
        self.settings = settings
        self.profile = settings.resolved()
        self.paths = home or paths()
        self._datastore = datastore_folder(self.paths, settings.datastore)
        # an unknown name is refused now, not after the models are loaded
        check_drafter(settings.drafter, Resources(datastore=self._datastore), settings.draft_model is not None)
        self.device = choose_device(settings.device)
        choose_dtype(settings.dtype, self.device, False)  # an unknown one is refused now, too
        default = default_max_nodes(self.device, settings.node_budget == "adaptive")
        self.max_nodes = default if settings.max_nodes is None else settings.max_nodes
        self._say = say
        self._loading = threading.RLock()

    @functools.cached_property
    def dtype_name(self) -> str:
        """The target model's number format, as in settings."""
        from decoding.targets import AUTO, LEAN, takes_kernels

        wanted = self.settings.dtype
        exact = wanted == "auto" and self.settings.target in (AUTO, LEAN) and takes_kernels(self.model_folder)
        return choose_dtype(wanted, self.device, exact)

    def _resolve(self, model_id: str) -> Path:
        return resolve_model(model_id, self.paths.models, self._say)

    @functools.cached_property
    def encoder_folder(self) -> Path:
        """The folder of the encoder's files."""
        return self._resolve(self.profile.encoder)

    @functools.cached_property
    def encoder(self) -> Encoder:
        """The encoder of questions and passages."""
        from retrieval.encoders import load_encoder

        return load_encoder(self.profile.encoder, self.encoder_folder, self.device)

    @functools.cached_property
    def cross_encoder(self) -> CrossEncoderReranker:
        """The reranker of profiles that have a model for it."""
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
    def target(self) -> TargetModel:
        """The target model."""
        from decoding.targets import load_target

        return load_target(self.model_folder, self.device, self.dtype_name, self.settings.target, self.settings.exact)

    @functools.cached_property
    def draft_model(self) -> DraftModel:
        """The small model of some drafters. Raises SettingError if its vocabulary is not the target model's."""
        from decoding.causal_draft_model import CausalDraftModel
        from decoding.draft_model import check_same_vocabulary
        from decoding.targets import load_target

        name = self.settings.draft_model or ""
        folder = self._resolve(name)
        check_same_vocabulary(self.profile.model, self.tokenizer, name, _load_tokenizer(folder))
        return CausalDraftModel(load_target(folder, self.device, self.dtype_name, self.settings.target))

    @functools.cached_property
    def _token_table(self) -> TokenTable:
        return read_table(self.tokenizer, self.target.vocabulary)

    @functools.cached_property
    def tokenizer_hash(self) -> str:
        """Names the target model's tokenizer: what datastores are checked by."""
        return tokenizer_hash(self.tokenizer)

    def resources(self, drafter: str) -> Resources:
        """What the drafter of that name needs; a draft model is loaded only for one that does."""
        needed = drafter in NEEDS_DRAFT_MODEL and self.settings.draft_model
        return Resources(
            self.tokenizer_hash if self._datastore else "",
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
    def verify_times(self) -> VerifyTimes:
        """What verifying costs; measured with the target's cache for itself: ask for it while no answer is being
        written."""
        return VerifyTimes(load_costs(self.paths.verify_costs, self._costs_key, self.target, self._say))

    def forget_verify_times(self) -> None:
        """Have them measured again when they are next asked for."""
        forget_costs(self.paths.verify_costs, self._costs_key)
        vars(self).pop("verify_times", None)

    @property
    def _costs_key(self) -> Key:
        return costs_key(
            self.profile.model, self.model_folder, self.target, self.device, self.dtype_name, self.max_nodes
        )
