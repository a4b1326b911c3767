"""The chat page (Gradio): ask, watch the answer and its copied spans appear, stop, upload.

Knows Gradio and the engine; what it shows is made in app.html. Conversations live in the session's own
state on the server, so two browsers never see each other's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from app import uploads
from app.answers import Answer
from app.engine import Engine
from app.page import html
from indexes.errors import IndexStoreError, QuotewrightError
from indexes.files import current_generation
from indexes.store import check_name, names
from retrieval.conversation import Turn
from retrieval.documents import PARSERS
from retrieval.python_docs import PYTHON_DOCS

UPLOADS = ":uploads"  # cannot be the name of an index
EXAMPLES = [
    "What is a lambda expression?",
    "What does the with statement do?",
    "When is the else clause of a try statement executed?",
]
Message = dict[str, str]


class ChatPage:
    """The page's event handlers; holds the engine and a cancel flag per session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cancels: dict[str, threading.Event] = {}

    def folder(self, index: str, token: str) -> Path:
        """The folder of an index that this browser may ask. Raises SettingError."""
        if index == UPLOADS:
            return uploads.private_index(self._engine, token)
        return self._engine.paths.indexes / check_name(str(index))

    def answer(
        self, question: str, conversation: list[Answer], index: str, token: str, request: gr.Request
    ) -> Iterator[tuple[Any, ...]]:
        """Answer a question, yielding (chat messages, passages, conversation, question box, send, stop)."""
        question = (question or "").strip()
        if not question:
            yield (*self._view(conversation), gr.skip(), *_buttons(busy=False))
            return
        person = str(request.session_hash)
        cancel = self._cancels[person] = threading.Event()
        turns = [Turn(answer.question, answer.text) for answer in conversation if answer.text]
        yield (*self._view(conversation, asked=question), "", *_buttons(busy=True))
        now = conversation
        try:
            folder = self.folder(index, token)
            for state in self._engine.ask(question, folder, turns, cancelled=cancel.is_set, person=person):
                now = [*conversation, state]
                yield (*self._view(now), gr.skip(), *_buttons(busy=True))
            yield (*self._view(now), gr.skip(), *_buttons(busy=False))
        except QuotewrightError as error:
            chat, panel, _ = self._view(conversation, asked=question, error=str(error))
            yield chat, panel, conversation, gr.skip(), *_buttons(busy=False)
        finally:
            cancel.set()

    def _view(
        self, conversation: list[Answer], asked: str = "", error: str = ""
    ) -> tuple[list[Message], str, list[Answer]]:
        messages: list[Message] = []
        for turn, answer in enumerate(conversation):
            messages.append({"role": "user", "content": html.question_html(answer.question)})
            messages.append({"role": "assistant", "content": html.answer_html(answer, turn)})
        if asked:
            messages.append({"role": "user", "content": html.question_html(asked)})
        if error:
            messages.append({"role": "assistant", "content": html.error_html(error)})
        return messages, html.passages_html(conversation), conversation

    def stop(self, request: gr.Request) -> None:
        """Stop this session's answer: the model runs at most one more forward pass."""
        if cancel := self._cancels.get(str(request.session_hash)):
            cancel.set()

    def leave(self, request: gr.Request) -> None:
        """The browser has gone: stop, and forget the session."""
        self.stop(request)
        self._cancels.pop(str(request.session_hash), None)
        self._engine.forget(str(request.session_hash))

    def clear(self) -> tuple[Any, ...]:
        """A new conversation."""
        return self._view([])

    def arrive(self, token: str) -> tuple[str, Any]:
        """Give a new browser its token, and list the indexes that it may ask."""
        token = token if uploads.is_token(token) else uploads.new_token()
        return token, gr.update(choices=self._choices(token))

    def _choices(self, token: str) -> list[tuple[str, str]]:
        choices = [(name, name) for name in names(self._engine.paths.indexes)]
        try:
            current_generation(uploads.private_index(self._engine, token))
        except IndexStoreError:
            return choices
        return [*choices, ("My uploads (only in this browser)", UPLOADS)]

    def upload(self, files: list[str], token: str, progress: gr.Progress = gr.Progress()) -> tuple[str, Any]:  # noqa: B008
        """Index uploaded files privately and choose that index."""

        def show(what: str, done: int, total: int) -> None:
            progress((done, total), desc=what)

        try:
            report = uploads.add_uploads(self._engine, token, [Path(file) for file in files or []], show)
        except QuotewrightError as error:
            return html.report_html(str(error), {}), gr.skip()
        summary = f"{report.documents} documents, {report.passages} passages; {report.encoded} new or changed."
        choice = gr.update(choices=self._choices(token), value=UPLOADS)
        return html.report_html(summary, report.skipped), choice


def _buttons(busy: bool) -> tuple[Any, Any]:
    return gr.update(visible=not busy), gr.update(visible=busy)


def build_page(engine: Engine) -> Any:
    """The page's components and how they hang together."""
    page = ChatPage(engine)
    with gr.Blocks(title="Quotewright", fill_width=True, analytics_enabled=False) as blocks:
        conversation = gr.State([])
        token = gr.BrowserState("", storage_key="quotewright", secret="quotewright")
        gr.Markdown("# Quotewright\nAsks your documents. Coloured words stand in the passages beside; click them.")
        if engine.profile.note:
            gr.HTML(f'<div class="qw-note">{html.escape(engine.profile.note)}</div>')
        with gr.Row():
            with gr.Column(scale=3):
                chatbot = gr.Chatbot(
                    show_label=False,
                    height="60vh",
                    buttons=[],
                    feedback_options=None,
                    latex_delimiters=[],
                    elem_id="qw-chat",
                )
                with gr.Row():
                    question = gr.Textbox(
                        show_label=False,
                        placeholder="Ask a question",
                        scale=5,
                        lines=1,
                        max_lines=6,
                        elem_id="qw-question",
                    )
                    send = gr.Button("Ask", variant="primary", scale=1, elem_id="qw-send")
                    stop = gr.Button("Stop", variant="stop", scale=1, visible=False, elem_id="qw-stop")
                gr.Examples(EXAMPLES, question, label="For example", elem_id="qw-examples")
            with gr.Column(scale=2):
                with gr.Row():
                    index = gr.Dropdown(
                        [PYTHON_DOCS], value=engine.settings.index, label="Index", scale=3, elem_id="qw-index"
                    )
                    new = gr.Button("New chat", scale=1, elem_id="qw-new")
                upload = gr.UploadButton(
                    "Upload files (only for you)", file_count="multiple", file_types=sorted(PARSERS), size="sm",
                    elem_id="qw-upload",
                )  # fmt: skip
                report = gr.HTML(elem_id="qw-report")
                panel = gr.HTML(html.NOTHING_YET, elem_id="qw-panel")
        asking: dict[str, Any] = {
            "fn": page.answer,
            "inputs": [question, conversation, index, token],
            "outputs": [chatbot, panel, conversation, question, send, stop],
            "concurrency_id": "model",
            "concurrency_limit": 1,
            "show_progress": "hidden",
            "api_visibility": "private",
        }
        send.click(**asking)
        question.submit(**asking)
        quiet: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
        stop.click(page.stop, **quiet)
        new.click(page.stop, **quiet).then(page.clear, None, [chatbot, panel, conversation], **quiet)
        chatbot.clear(page.clear, None, [chatbot, panel, conversation], **quiet)
        upload.upload(
            page.upload,
            [upload, token],
            [report, index],
            concurrency_id="model",
            concurrency_limit=1,
            api_visibility="private",
        )
        blocks.load(page.arrive, token, [token, index], api_visibility="private", show_progress="hidden")
        blocks.unload(page.leave)
    return blocks
