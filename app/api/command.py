"""The command `serve`: the HTTP API, with the chat page beside it if wanted."""

from __future__ import annotations

from typing import Annotated

import typer

from app.api.reach import check_reach
from app.command_line import make_engine
from app.options import EngineFlags, refuse_finder, takes_engine_flags

EPILOG = (
    "Examples: python app.py serve   |   serve --page --port 8080   |   QUOTEWRIGHT_API_KEYS=... serve --host 0.0.0.0"
)


@takes_engine_flags
def serve(
    flags: EngineFlags,
    host: Annotated[
        str, typer.Option(help="Address to serve on; other machines cannot reach 127.0.0.1.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to serve on.")] = 8000,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the chat page too, at /.")] = False,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="Let other machines ask without a key, and use the page.")
    ] = False,
) -> None:
    """Serve the HTTP API, OpenAI's protocol: /v1/chat/completions, /v1/embeddings, /v1/models, and /v1/answers.

    API keys come from the setting api_keys: QUOTEWRIGHT_API_KEYS, or settings.toml. Every key has caches of its own.
    """
    from app.settings import load_settings

    settings = load_settings(**flags)
    keys = [key.get_secret_value() for key in settings.api_keys]
    check_reach(host, bool(keys), page, open_to_all)
    from app.api.access import make_access
    from app.api.application import create_application
    from app.api.page import mount_page
    from app.api.server import listening_socket
    from app.api.server import serve as run

    refuse_finder(flags)
    listening = listening_socket(host, port)  # a port that is taken is told of before anything is loaded
    engine = make_engine(**flags)
    from app.indexing import build_python_docs
    from app.terminal import progress_bars

    access = make_access(host, keys, settings.allowed_hosts, settings.cors_origins, page)
    application = create_application(engine, access)
    with progress_bars() as progress:
        build_python_docs(engine, progress)
    if page:
        mount_page(application, engine)
    run(application, listening, engine.load)
