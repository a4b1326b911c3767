"""Serves the chat page: everything that Gradio must be told besides the components, and a server of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import gradio as gr

from app.api.reach import is_loopback
from app.engine import Engine
from app.page.layout import build_page
from app.terminal import say
from app.users import Users
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
    return {
        "auth": _login(engine) if engine.settings.auth else None,
        "auth_message": "Quotewright: answers from your documents",
        "theme": gr.themes.Default(font=fonts, font_mono=["ui-monospace", "monospace"]),
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


def serve(engine: Engine, host: str, port: int) -> None:
    """Serve the page until Ctrl-C, loading the models meanwhile. Raises SettingError if the port is taken."""
    arguments = page_arguments(engine)
    blocks = build_page(engine)
    try:
        blocks.launch(server_name=host, server_port=port, prevent_thread_lock=True, quiet=True, **arguments)
    except OSError as error:
        raise SettingError(f"cannot serve on {host}:{port} ({error}); choose another port with --port") from error
    if not is_loopback(host) and not engine.settings.auth:
        say(f"Everybody who can reach {host} can use this page; --auth lets in only who was added with `users add`")
    say(f"Quotewright is on http://{host}:{port} (Ctrl-C stops it)")
    threading.Thread(target=engine.load, daemon=True).start()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        say("Stopping.")
    finally:
        blocks.close(verbose=False)
