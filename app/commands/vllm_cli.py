"""The command `serve-vllm`: vLLM's server with our drafter in it, from vLLM's own environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.api.reach import check_reach
from app.commands.options import HostOption, PortOption
from indexes.errors import SettingError

EPILOG = (
    "Examples: python app.py serve-vllm HuggingFaceTB/SmolLM2-135M-Instruct   |   serve-vllm ~/models/qwen --port 8001 "
    "-- --tensor-parallel-size 2   |   then: app.py ask --engine openai --base-url http://127.0.0.1:8000/v1 ..."
)
WITH_EXTRA = {"allow_extra_args": True}


def serve_vllm(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="A hub id or a folder.")],
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    draft_tokens: Annotated[
        int, typer.Option(min=0, max=256, help="Longest chain that is drafted; 0: vLLM without our drafter.")
    ] = 24,
    vllm_python: Annotated[
        Path | None, typer.Option(help="An interpreter that has vLLM (default: that of `make vllm-env`).")
    ] = None,
    open_to_all: Annotated[bool, typer.Option("--open", help="Let other machines ask without a key.")] = False,
) -> None:
    """Serve a model with vLLM, many requests at once, drafted from their own prompts. What follows -- goes to vLLM.

    Ask it with --engine openai. The API key is the setting api_keys (QUOTEWRIGHT_API_KEYS), one at most.
    """
    from app.commands.terminal import say
    from app.setup.models import resolve_model
    from app.setup.settings import load_settings, paths
    from app.setup.vllm_server import VllmServer, find_python, run

    settings = load_settings(vllm_python=vllm_python)
    keys = [key.get_secret_value() for key in settings.api_keys]
    if len(keys) > 1:
        raise SettingError(f"vLLM takes one API key, and the setting api_keys holds {len(keys)}: leave one")
    check_reach(host, bool(keys), page=False, open_to_all=open_to_all)
    python = find_python(settings.vllm_python)
    folder = resolve_model(model, paths().models, say)
    server = VllmServer(python, folder, model, host, port, draft_tokens, keys[0] if keys else None, tuple(context.args))
    say(f"Starting vLLM for {model} on http://{host}:{port}/v1; it compiles for a minute or so when first started")
    if code := run(server.command(), server.environment(os.environ, paths().cache)):
        say(f"vLLM ended with exit code {code}; its own message is above")
        sys.exit(1)
