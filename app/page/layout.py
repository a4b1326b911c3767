"""The page's components: conversations on the left, the open one in the middle, documents and settings on the right.

Says what stands where and what it is called; `app.page.events` says what happens.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.answering.engine import Engine
from app.page.answers_html import NOTHING_YET
from app.page.chats_html import LOADING
from app.page.documents_html import NO_PLACE
from app.page.events import connect
from app.page.parts import Parts
from app.page.preferences import MOST, defaults, drafters
from app.page.race_html import RACE_HINT
from retrieval.documents import PARSERS

TURN_ACTS = ("place", "ask_again", "edit_question", "example")
CHAT_ACTS = ("open_chat", "rename_chat", "delete_chat", "export_chat")
RECEIVE = "watch('value', () => { if (props.value) quotewright.receive(props.value); });"


def build_page(engine: Engine) -> Any:
    """The page's components and how they hang together."""
    with gr.Blocks(
        title="Quotewright", fill_width=True, analytics_enabled=False, delete_cache=(3600, 3600), elem_id="qw"
    ) as blocks:
        parts: dict[str, Any] = {
            "token": gr.BrowserState("", storage_key="quotewright", secret="quotewright"),
            "chat": gr.State(""),
            "editing": gr.State(0),
            "carrier": gr.HTML(None, html_template="", js_on_load=RECEIVE, elem_id="qw-carrier", visible="hidden"),
        }
        gr.HTML(_top_html(engine.settings.auth), elem_id="qw-top", js_on_load="quotewright.drawers(element);")
        with gr.Row(elem_id="qw-body"):
            with gr.Column(elem_id="qw-left", min_width=0):
                parts |= _chats()
            with gr.Column(elem_id="qw-middle", min_width=0), gr.Tabs(elem_id="qw-views"):
                with gr.Tab("Chat", id="chat"):
                    parts |= _conversation(engine)
                with gr.Tab("Race", id="race"):
                    parts |= _race()
            with gr.Column(elem_id="qw-right", min_width=0), gr.Tabs(elem_id="qw-tabs") as tabs:
                parts |= {"tabs": tabs} | _beside(engine)
        connect(engine, Parts(**parts), blocks)
    return blocks


def acting(value: str, acts: tuple[str, ...], elem_id: str) -> gr.HTML:
    """Markup of ours whose buttons trigger events of these names."""
    names = ", ".join(f'"{act}"' for act in acts)
    return gr.HTML(
        value,
        js_on_load=f"quotewright.wire(element, trigger, [{names}]);",
        elem_id=elem_id,
        apply_default_css=False,
    )


def _top_html(auth: bool) -> str:
    out = '<a class="qw-out" href="logout">Log out</a>' if auth else ""
    return (
        '<button type="button" class="qw-toggle" data-drawer="left" aria-label="Show or hide conversations">☰</button>'
        f"<h1>Quotewright</h1><span>answers from your documents, with every copied word in its place</span>{out}"
        '<button type="button" class="qw-toggle" data-drawer="right" '
        'aria-label="Show or hide passages, documents and settings">☷</button>'
    )


def _chats() -> dict[str, Any]:
    return {
        "new": gr.Button("New chat (Alt+N)", elem_id="qw-new", size="sm"),
        "chats": acting(LOADING, CHAT_ACTS, "qw-chats"),
    }


def _conversation(engine: Engine) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    parts["notice"] = gr.HTML("", elem_id="qw-notice")
    with gr.Column(elem_id="qw-chat", min_width=0):
        parts["log"] = acting(LOADING, TURN_ACTS, "qw-log")
        parts["live"] = acting("", TURN_ACTS, "qw-live")
    with gr.Row(visible=False, elem_id="qw-edit") as parts["edit_row"]:
        gr.HTML("Editing an earlier question: it and what follows will be replaced.")
        parts["cancel_edit"] = gr.Button("Leave it", size="sm", elem_id="qw-cancel-edit", min_width=90, scale=0)
    with gr.Row(elem_id="qw-ask"):
        parts["question"] = gr.Textbox(
            label="Question",
            show_label=False,
            placeholder="One moment …",  # until the server knows who asks
            interactive=False,
            lines=1,
            max_lines=6,
            elem_id="qw-question",
            scale=1,
            min_width=0,
        )
        parts["send"] = gr.Button("Ask", variant="primary", elem_id="qw-send", min_width=70, scale=0)
        parts["stop"] = gr.Button("Stop", variant="stop", elem_id="qw-stop", min_width=70, scale=0, visible=False)
    with gr.Row(elem_id="qw-asked"):
        gr.HTML("Asking")
        parts["source"] = gr.Dropdown(
            [engine.settings.index],
            value=engine.settings.index,
            label="Which documents are asked",
            show_label=False,
            container=False,
            elem_id="qw-index",
        )
    return parts


def _race() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Row(elem_id="qw-race-ask"):
        parts["race_question"] = gr.Textbox(
            label="Question for both",
            show_label=False,
            placeholder="A question for both",
            elem_id="qw-race-question",
            scale=1,
            min_width=0,
        )
        parts["race_start"] = gr.Button("Race", variant="primary", elem_id="qw-race-start", min_width=70, scale=0)
        parts["race_stop"] = gr.Button(
            "Stop", variant="stop", elem_id="qw-race-stop", min_width=70, scale=0, visible=False
        )
    parts["race_view"] = gr.HTML(RACE_HINT, elem_id="qw-race", apply_default_css=False)
    return parts


def _beside(engine: Engine) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Tab("Passages", id="passages"):
        parts["panel"] = acting(NOTHING_YET, TURN_ACTS, "qw-panel")
    with gr.Tab("Source", id="source"):
        parts["place"] = acting(NO_PLACE, ("original",), "qw-place")
    with gr.Tab("Documents", id="documents"):
        parts["upload"] = gr.UploadButton(
            "Upload files (only for you)",
            file_count="multiple",
            file_types=sorted(PARSERS),
            size="sm",
            elem_id="qw-upload",
        )
        parts["reindex"] = gr.Button("Index my documents again", size="sm", elem_id="qw-reindex")
        parts["report"] = gr.HTML(elem_id="qw-report")
        parts["documents"] = acting("", ("original", "delete_document"), "qw-documents")
    with gr.Tab("Settings", id="settings"):
        parts |= _settings(engine)
    return parts


def _settings(engine: Engine) -> dict[str, Any]:
    usual = defaults(engine)
    gr.HTML("For your questions only. Drafter and budget never change a word of an answer, only how fast it comes.")
    return {
        "drafter": gr.Dropdown(
            drafters(engine),
            value=usual.drafter,
            label="Drafter: how the next words are guessed",
            info="A guess is checked by the model; a wrong one costs a little time and changes nothing.",
            elem_id="qw-drafter",
        ),
        "budget": gr.Slider(
            0, max(MOST["budget"], usual.budget), usual.budget, step=1,
            label="Budget: most guessed words checked at once",
            info="More can be faster where answers quote much. 0 guesses nothing.",
            elem_id="qw-budget",
        ),
        "top_k": gr.Slider(
            1, max(MOST["top_k"], usual.top_k), usual.top_k, step=1,
            label="Passages that the model reads",
            info="More of them may hold the answer, take longer to read, and confuse a small model.",
            elem_id="qw-top-k",
        ),
        "temperature": gr.Slider(
            0, MOST["temperature"], usual.temperature, step=0.05,
            label="Temperature: how much chance there is in the choice of words",
            info="0 always takes the likeliest word, and gives the same answer each time.",
            elem_id="qw-temperature",
        ),
        "length": gr.Slider(
            1, max(MOST["length"], usual.length), usual.length, step=1,
            label="Longest answer, in tokens",
            info="A token is a short word or a part of a word.",
            elem_id="qw-length",
        ),
        "reset": gr.Button("As it was", size="sm", elem_id="qw-reset"),
    }  # fmt: skip
