"""What every command line of ours does: makes an engine of its flags, and ends with a message and not a traceback."""

from __future__ import annotations

import io
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from indexes.errors import QuotewrightError

if TYPE_CHECKING:
    from app.answering.engine import Engine

USER_ERROR, INTERRUPTED = 2, 130


def make_engine(**flags: Any) -> Engine:
    """An engine with these settings, None left to the environment and the profile; says things on stderr."""
    quiet_libraries()
    from app.answering.engine import Engine
    from app.commands.terminal import say
    from app.setup.settings import load_settings

    return Engine(load_settings(**flags), say)


def quiet_libraries() -> None:
    """Keep libraries' own bars and notices away from people; set before they are imported."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def run_cli(command: typer.Typer) -> None:
    """Run a command line; user errors end with exit code 2 and a message, Ctrl-C with 130."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name may hold what a terminal cannot show
    try:
        command()  # usage errors, a reader that went away and most Ctrl-Cs end here, with exit codes 2, 1 and 130
    except (QuotewrightError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
