"""The command line's `datastore` commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from app.commands.command_line import make_engine
from app.commands.options import JsonOption
from indexes.errors import SettingError

datastore_cli = typer.Typer(no_args_is_help=True, help="Datastores of past text, for the drafters crest and rest.")


@datastore_cli.command(epilog="Example: python app.py datastore build ~/answers notes.jsonl --name past --size 100000")
def build(
    path: Annotated[list[Path], typer.Argument(help="Files, and folders of them: txt md rst py jsonl.")],
    name: Annotated[str, typer.Option("--name", "-n", help="What to call the datastore.")] = "",
    kind: Annotated[str, typer.Option(help="crest (small, constant time) or rest (all of the text).")] = "crest",
    size: Annotated[int, typer.Option(help="crest: how many n-grams are kept for each n (t).")] = 100_000,
    max_ngram: Annotated[int, typer.Option(help="crest: longest n-gram (m); 4 for chat, 5 for code.")] = 4,
    least: Annotated[int, typer.Option(help="crest: continuations seen fewer times are left out.")] = 1,
    limit_mb: Annotated[
        float | None, typer.Option(help="crest: keep of these what tells most in so many megabytes, as flat trees.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Whose tokens it holds: a hub id or a folder.")] = None,
    profile: Annotated[str | None, typer.Option(help="laptop (default), desktop or gpu.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a datastore from files and folders, in place of one that has this name."""
    from app.commands.terminal import print_skipped, progress_bars, say
    from app.documents.datastores import Report, build, report_json
    from indexes.crest_build import CrestSettings, compact

    if not name:
        raise SettingError("a datastore needs a name: --name NAME")
    settings = CrestSettings(size, max_ngram, least=least)
    if limit_mb is not None:
        settings = compact(settings, int(limit_mb * 10**6))
    engine = make_engine(model=model, profile=profile, drafter="plain")
    report = Report(name, kind)
    with progress_bars() as progress:
        build(engine.paths, report, path, engine.tokenizer, settings, progress)
    if as_json:
        print(json.dumps(report_json(report)))
        return
    print_skipped(report.skipped)
    print(f"{name}: {report.files} files, {report.tokens} tokens in {report.texts} texts; {report.bytes} bytes on disk")
    say(f"Draft from it with: python app.py ask ... --drafter {kind} --datastore {name}")


@datastore_cli.command()
def verify(name: Annotated[str, typer.Argument(help="A datastore.")], as_json: JsonOption = False) -> None:
    """Compare every byte of a datastore with what was written."""
    from app.documents.datastores import verify
    from app.setup.settings import paths

    found = verify(paths(), name)
    print(json.dumps(found) if as_json else f"{name}: {found['bytes']} bytes are as they were written")


@datastore_cli.command("list")
def list_(as_json: JsonOption = False) -> None:
    """Name, kind and size of every datastore."""
    from app.documents.datastores import listed
    from app.setup.settings import paths

    found = listed(paths())
    if as_json:
        print(json.dumps(found))
    for store in [] if as_json else found:
        print(f"{store['name']}: {store.get('error') or '{kind}, {bytes} bytes'.format_map(store)}")
