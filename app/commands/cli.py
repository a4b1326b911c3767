"""The command line: ``python app.py --help``. Heavy libraries are imported by the commands that need them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from app.api import command as api_command
from app.batch.command import batch
from app.commands.command_line import make_engine, run_cli
from app.commands.datastore_cli import datastore_cli
from app.commands.documents_cli import documents_cli
from app.commands.index_cli import index_cli
from app.commands.options import (
    AuthOption,
    DeviceOption,
    EngineFlags,
    HostOption,
    JsonOption,
    PortOption,
    ProfileOption,
    takes_engine_flags,
)
from app.commands.users_cli import users_cli
from app.commands.vllm_cli import EPILOG as VLLM_EPILOG
from app.commands.vllm_cli import WITH_EXTRA, serve_vllm

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    epilog='Examples: app.py chat   |   app.py ask "What is a lambda?"   |   app.py index ~/notes --name notes   |   '
    "app.py trace --answer-file a.txt --passages-file p.jsonl   |   app.py COMMAND --help",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.add_typer(datastore_cli, name="datastore")
cli.add_typer(users_cli, name="users")
cli.add_typer(documents_cli, name="documents")
cli.add_typer(index_cli, name="index")
cli.command(
    epilog="Examples: python app.py batch -d python-docs -o runs/python --compare plain   |   "
    "batch -d q.jsonl -o run   |   batch -d q.jsonl -o run --engine ray --actors 4"
)(batch)
cli.command("serve", epilog=api_command.EPILOG)(api_command.serve)
cli.command("serve-vllm", epilog=VLLM_EPILOG, context_settings=WITH_EXTRA)(serve_vllm)


@cli.callback()
def quotewright() -> None:
    """Answers questions over your own documents, faster than plain decoding with the same words, and shows
    which passage each copied span stands in."""


@cli.command(epilog='Examples: python app.py ask "What is a lambda?"   |   ask "..." --index notes --json')
@takes_engine_flags
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    flags: EngineFlags,
    as_json: JsonOption = False,
) -> None:
    """Answer one question: streamed, copied spans coloured per passage, then the passages and the figures."""
    engine = make_engine(**flags)
    from app.answering.sources import chosen_source
    from app.commands.terminal import print_stream, progress_bars

    with progress_bars() as progress:
        source = chosen_source(engine, progress)
    answers = engine.ask(question, source)
    if as_json:
        *_, answer = answers
        print(json.dumps(answer.to_json()))
    else:
        print_stream(answers)


@cli.command(epilog="Example: python app.py trace --answer-file answer.txt --passages-file passages.jsonl --json")
def trace(
    answer_file: Annotated[Path, typer.Option(help="The answer, as text.")],
    passages_file: Annotated[Path, typer.Option(help='The passages, best first: lines of {"id": ..., "text": ...}.')],
    min_words: Annotated[int | None, typer.Option(min=1, help="Shortest span, in words (default: 3).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show which runs of any model's answer stand verbatim in which passage."""
    from app.answering.spans import Tracer, copied_fraction
    from app.commands.terminal import print_trace
    from app.commands.tracing import read_passages, read_text
    from app.setup.settings import load_settings

    answer, passages = read_text(answer_file), read_passages(passages_file)
    spans = Tracer(passages, load_settings(min_span_words=min_words).min_span_words).spans(answer)
    fraction = copied_fraction(answer, spans)
    if as_json:
        print(json.dumps({"spans": [span.to_json() for span in spans], "copied_fraction": fraction}))
    else:
        print_trace(answer, spans, [passage_id for passage_id, _ in passages], fraction)


@cli.command(epilog="Examples: python app.py setup   |   setup --profile desktop")
def setup(profile: ProfileOption = None, device: DeviceOption = None) -> None:
    """Fetch the models and index the built-in corpus, so that everything later works without a network."""
    engine = make_engine(profile=profile, device=device)
    from app.commands.terminal import progress_bars, say
    from app.documents.indexing import build_python_docs

    with progress_bars() as progress:
        built = build_python_docs(engine, progress)
    engine.load()
    state = f"{built.passages} passages indexed" if built else "index present"
    say(f"Ready: {engine.profile.name} profile on {engine.device}, {state}; files lie in {engine.paths.data}")


@cli.command(epilog="Examples: python app.py chat   |   chat --port 8080 --profile desktop")
@takes_engine_flags
def chat(
    flags: EngineFlags,
    host: HostOption = "127.0.0.1",
    port: PortOption = 7860,
    auth: AuthOption = None,
) -> None:
    """Serve the chat page."""
    api_command.serve_page(flags | {"auth": auth}, host, port)


def main() -> None:
    """Run the command line of app.py."""
    run_cli(cli)
