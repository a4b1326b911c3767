"""What Gradio must be told for the chat page besides its components."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import gradio as gr

from app.answering.engine import Engine
from app.page.users import Users
from indexes.errors import SettingError

HERE = Path(__file__).parent


def page_arguments(engine: Engine) -> dict[str, Any]:
    """What `gr.mount_gradio_app` and `Blocks.launch` must be given for the page: looks, limits, nothing that calls out.

    Sets where Gradio keeps uploads until the page takes them.
    """
    temporary = engine.paths.cache / "gradio"
    temporary.mkdir(parents=True, exist_ok=True)
    os.environ["GRADIO_TEMP_DIR"] = str(temporary)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    fonts = ["system-ui", "sans-serif"]
    theme = gr.themes.Default(font=fonts, font_mono=["ui-monospace", "monospace"])
    theme.set(block_info_text_color="*neutral_600", block_info_text_color_dark="*neutral_300")  # to be read easily
    return {
        "auth": _login(engine) if engine.settings.auth else None,
        "auth_message": "Quotewright: answers from your documents",
        "theme": theme,
        "css_paths": HERE / "page.css",
        "head": f"<script>{(HERE / 'page.js').read_text('utf-8')}</script>",
        "max_file_size": "200mb",
        "footer_links": [],
        "run_history": False,  # it would keep questions and answers in the browser
        "ssr_mode": False,
    }


def _login(engine: Engine) -> Callable[[str, str], Awaitable[bool]]:
    """What tells Gradio whether a name and a password go together. Raises SettingError if nobody could log in."""
    users = Users(engine.paths.users)
    if not users.names():
        raise SettingError("nobody could log in: add a user with `python app.py users add NAME`, or leave out --auth")

    async def check(name: str, password: str) -> bool:
        return await asyncio.to_thread(users.check, name, password)  # hashing takes its time on purpose

    return check
