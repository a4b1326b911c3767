"""Question in, answer out: finds passages and has the answer written. The command line and the page share it.

Owns the models and the opened indexes. They load when first needed, once, and one answer is written at a time.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from app.answering.answer_cache import AnswerCache
from app.answering.answers import Answer, Stats, without_an_answer
from app.answering.asking import AS_SET, AnswerOptions, Task
from app.answering.kept_drafters import KeptCounts, KeptDrafters
from app.answering.library import Library, asked
from app.answering.loading import silent
from app.answering.prompt import Message, checked
from app.answering.remote import RemoteWriter, remote_server
from app.answering.writing import AnswerWriter, WritingSettings
from app.setup.models import Say
from app.setup.profiles import LATE_INTERACTION, NO_RERANKER
from app.setup.settings import Paths, Settings
from decoding.acceptance import Acceptance
from decoding.budget import AdaptiveNodes, NodeBudget
from decoding.drafter import Drafter
from decoding.drafters import CALIBRATED, Resources, check_drafter, make_drafter
from decoding.drafters.blend import compile_blend
from decoding.loop import never
from decoding.prefixes import KeptPrefixes
from decoding.sampling import Sampling
from retrieval.conversation import Turn
from retrieval.finder import Finder, Found

ASK_EVERY_S = 0.05  # whether an answer that waits for the model is still wanted
EVERYBODY = ""  # the namespace of shared answers; nobody's own
REUSABLE = ("stop", "length")  # how an answer ends that later ones may copy from


class Engine(Library):
    """Everything loaded for one choice of settings. Raises SettingError for choices that cannot be."""

    def __init__(self, settings: Settings, say: Say = silent, home: Paths | None = None) -> None:
        super().__init__(settings, say, home)
        filters = settings.top_p, settings.sample_top_k, settings.min_p
        self.sampling = Sampling(settings.temperature, *filters, settings.repetition_penalty, settings.seed)
        self._writing = threading.Lock()
        self._budgets: dict[str, NodeBudget] = {}
        self._drafters = KeptDrafters(self._new_drafter)
        self._checked = False
        self._loaded = False
        server = remote_server(settings)
        self._remote = RemoteWriter(server, self._writing_settings) if server else None

    @functools.cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(self.encoder.encode_questions)

    @functools.cached_property
    def _counts(self) -> KeptCounts:
        return KeptCounts(self.writer.encode)

    @property
    def _writing_settings(self) -> WritingSettings:
        settings, turns = self.settings, self.profile.history_turns
        limits = settings.max_new_tokens, self.max_nodes, turns, settings.min_span_words
        return WritingSettings(*limits, settings.stop_repeats, self.sampling)

    @functools.cached_property
    def _answer_writer(self) -> AnswerWriter:
        settings = self._writing_settings
        return AnswerWriter(self.target, self.tokenizer, self.writer, self.stop_tokens, settings, self._prefixes)

    @functools.cached_property
    def _prefixes(self) -> KeptPrefixes:
        return KeptPrefixes(self.target, self.settings.prefix_cache_mb * 2**20)

    def node_budget(self, drafter: str) -> NodeBudget | None:
        """How many nodes of this drafter's drafts to verify; None: all, up to max_nodes.

        It learns from every answer: how long passes take, and how often what the drafter states comes true.
        Ask for it while no answer is being written: the first one may measure.
        """
        if not self._adapts(drafter):
            return None
        if drafter not in self._budgets:
            self._budgets[drafter] = AdaptiveNodes(self.verify_times, Acceptance(drafter in CALIBRATED))
        return self._budgets[drafter]

    def _adapts(self, drafter: str) -> bool:
        return self.settings.node_budget == "adaptive" and drafter != "plain" and self.max_nodes > 0

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
                self._load()
        measures = self._remote is None and self._adapts(self.settings.drafter)
        if measures and "verify_times" not in vars(self):  # no answer is begun before, so nobody waits for one here
            with self._writing:
                self.node_budget(self.settings.drafter)

    def _load(self) -> None:
        """Load and compile. What is compiled already is only loaded."""
        notice = threading.Timer(10, self._say, ["Compiling what is fast (once on this machine, about a minute)"])
        notice.start()
        try:
            if self._remote is None:
                self._say(f"Loading {self.profile.model} on {self.device} in {self.dtype_name}")
                _ = self.writer, self.stop_tokens, self.resources(self.settings.drafter)
                if self.settings.drafter == "blend":
                    compile_blend()
            self._say(f"Loading {self.profile.encoder} on {self.device}")
            _ = self.encoder
            if self.profile.reranker not in (LATE_INTERACTION, NO_RERANKER):
                _ = self.cross_encoder
            self._loaded = True
        finally:
            notice.cancel()

    def _new_drafter(self, name: str, folder: Path | None) -> Drafter:
        """A drafter with what it needs; blend knows the n-grams of the whole index."""
        resources = self.resources(name)
        if resources.table is not None and folder is not None:
            resources = replace(resources, passages=self._counts.of(self.open(folder), len(resources.table)))
        return make_drafter(name, resources)

    # Answers

    def ask(
        self,
        question: str,
        source: Path | Finder,
        turns: Sequence[Turn] = (),
        options: AnswerOptions = AS_SET,
        cancelled: Callable[[], bool] = never,
        person: str | None = None,
    ) -> Iterator[Answer]:
        """Answer from the index in a folder, or from what a finder finds.

        Yields the answer's state: passages first, then after each pass; its text only ever grows. `person` says whose
        earlier answers drafts may copy from and learn from, and who may copy from this one; None: nobody's.
        Raises QuotewrightError for a question or setting that cannot be used.
        """
        yield from self._write(self.task(question, source, turns, options, cancelled, person))

    def task(
        self,
        question: str,
        source: Path | Finder,
        turns: Sequence[Turn] = (),
        options: AnswerOptions = AS_SET,
        cancelled: Callable[[], bool] = never,
        person: str | None = None,
    ) -> Task:
        """The answer to write, its passages found, as `ask` has it written; finished if they do not say."""
        start = time.perf_counter()
        question = asked(question)
        self._check(options)
        self.load()
        found = tuple(self.find(question, source, options.top_k, turns))
        retrieval_s = time.perf_counter() - start
        stats = Stats(options.drafter or self.settings.drafter, retrieval_s=retrieval_s, total_s=retrieval_s)
        state = Answer(question, found, stats)
        state = without_an_answer(state, self.settings.min_relevance) or state
        folder = source if isinstance(source, Path) else None
        return Task(state, options, turns, None, folder, cancelled, person, start)

    def complete(
        self,
        messages: Sequence[Message],
        references: Sequence[Found] = (),
        options: AnswerOptions = AS_SET,
        cancelled: Callable[[], bool] = never,
        person: str | None = None,
    ) -> Iterator[Answer]:
        """Go on after these messages, told to the model as they are, by its chat template.

        Drafts copy from the messages and from `references`, in which spans are found. Yields as `ask` does.
        """
        start = time.perf_counter()
        messages = checked(messages)
        question = next(message["content"] for message in reversed(messages) if message["role"] == "user")
        self._check(options)
        self.load()
        state = Answer(question, tuple(references), Stats(options.drafter or self.settings.drafter))
        yield from self._write(Task(state, options, (), messages, None, cancelled, person, start))

    def _check(self, options: AnswerOptions) -> None:
        if options.drafter is not None:
            check_drafter(options.drafter, Resources(datastore=self._datastore), self.settings.draft_model is not None)

    def _write(self, task: Task) -> Iterator[Answer]:
        """Have the answer written: elsewhere, or here when its turn has come, for here one is written at a time."""
        if task.state.finished:  # there is nothing to write it from
            yield task.state
            return
        if self._remote is not None:
            yield from self._remote.write(task)
            return
        with self.turn_to_write(task.cancelled) as may_write:
            if may_write:
                yield from self.write(task)
            else:
                yield replace(task.state, finished="cancelled")

    @contextlib.contextmanager
    def turn_to_write(self, cancelled: Callable[[], bool]) -> Iterator[bool]:
        """Wait until the model is free, and have it alone; False if the answer is cancelled before."""
        while not self._writing.acquire(timeout=ASK_EVERY_S):
            if cancelled():
                yield False
                return
        try:
            yield True
        finally:
            self._writing.release()

    def write(self, task: Task) -> Generator[Answer]:
        """Write an answer, for whoever has the model now."""
        state, person, folder = task.state, task.person, task.folder
        drafter, question = state.stats.drafter, state.question
        budget, guessing = self.node_budget(drafter), self._drafters.take(person, folder, drafter)
        namespace = self._namespace(person, folder) if task.messages is None else None
        similar = self._answers.similar(namespace, question) if namespace is not None else []
        try:
            for state in self._answer_writer.write(task, guessing, budget, similar):
                yield state
        finally:  # whoever asks stops reading, or the question is refused: what was learned before is kept
            self._drafters.put_back(person, folder, drafter, guessing)
            self._check_verify_times()
        if namespace is not None and state.finished in REUSABLE:
            self._answers.add(namespace, question, state.text)

    def _namespace(self, person: str | None, folder: Path | None) -> str | None:
        """Where a person's answers are kept. Those from a private index, or from elsewhere, are never shared."""
        public = folder is not None and folder.parent == self.paths.indexes
        if person is not None and self.settings.share_answers and public:
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
