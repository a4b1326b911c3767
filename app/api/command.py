"""The command `serve`: the HTTP API, with the chat page beside it if wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.api.reach import check_reach
from app.commands.command_line import make_engine
from app.commands.options import AuthOption, EngineFlags, HostOption, PortOption, takes_engine_flags
from indexes.errors import SettingError

if TYPE_CHECKING:
    from app.setup.settings import Settings

EPILOG = (
    "Examples: python app.py serve   |   serve --page --port 8080   |   QUOTEWRIGHT_API_KEYS=... serve --host 0.0.0.0"
)


@takes_engine_flags
def serve(
    flags: EngineFlags,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the chat page too, at /.")] = False,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="Let other machines ask without a key, and use the page.")
    ] = False,
    auth: AuthOption = None,
) -> None:
    """Serve the HTTP API, OpenAI's protocol: /v1/chat/completions, /v1/embeddings, /v1/models, and /v1/answers.

    API keys come from the setting api_keys: QUOTEWRIGHT_API_KEYS, or settings.toml. Every key has caches of its own.
    """
    from app.setup.settings import load_settings

    flags = flags | {"auth": auth}
    settings = load_settings(**flags)
    check_page_source(settings, page)
    keys = [key.get_secret_value() for key in settings.api_keys]
    check_reach(host, bool(keys), page and not settings.auth, open_to_all)
    from app.api.access import make_access
    from app.api.application import create_application
    from app.api.page import mount_page
    from app.api.server import listening_socket
    from app.api.server import serve as run

    listening = listening_socket(host, port)  # a port that is taken is told of before anything is loaded
    engine = make_engine(**flags)
    from app.answering.sources import chosen_source
    from app.commands.terminal import progress_bars

    access = make_access(host, keys, settings.allowed_hosts, settings.cors_origins, page)
    with progress_bars() as progress:
        source = chosen_source(engine, progress)
    application = create_application(engine, access, source)
    if page:
        mount_page(application, engine)
    run(application, listening, engine.load)


def serve_page(flags: EngineFlags, host: str, port: int) -> None:
    """Serve the chat page alone."""
    from app.setup.settings import load_settings

    check_page_source(load_settings(**flags), page=True)
    from app.api.access import make_access
    from app.api.page import page_alone
    from app.api.server import listening_socket
    from app.api.server import serve as run

    listening = listening_socket(host, port)
    engine = make_engine(**flags)
    from app.api.reach import is_loopback
    from app.commands.terminal import progress_bars, say
    from app.documents.indexing import build_python_docs

    settings = engine.settings
    if not is_loopback(host) and not settings.auth:
        say(f"Everybody who can reach {host} can use this page; --auth lets in only who was added with `users add`")
    application = page_alone(engine, make_access(host, (), settings.allowed_hosts, (), pages=True))
    with progress_bars() as progress:
        build_python_docs(engine, progress)
    run(application, listening, engine.load)


def check_page_source(settings: Settings, page: bool) -> None:
    """Raises SettingError where the page would have to ask what is no index."""
    if page and settings.finder:
        raise SettingError("the chat page asks indexes; a finder of your own works with ask, batch and serve --no-page")
