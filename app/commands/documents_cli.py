"""The command line's `documents` commands: what an index holds, and what is no longer to be in it."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.options import IndexOption, JsonOption

if TYPE_CHECKING:
    from indexes.passages import DocumentFacts

documents_cli = typer.Typer(no_args_is_help=True, help="The documents of an index: list them, show one, delete some.")

SourceArgument = Annotated[str, typer.Argument(help="A document's source, as `documents list` shows it.")]


def _folder(index: str | None) -> Path:
    from app.setup.settings import load_settings, paths
    from indexes.store import check_name

    return paths().indexes / check_name(load_settings(index=index).index)


@documents_cli.command(
    "list", epilog="Examples: python app.py documents list --index notes   |   documents list -i notes --json"
)
def list_(index: IndexOption = None, as_json: JsonOption = False) -> None:
    """Source, pages or characters, passages, and when it was indexed, for every document."""
    from app.commands.terminal import out, visible
    from app.documents.managing import list_documents

    folder = _folder(index)
    found = list_documents(folder)
    if as_json:
        print(json.dumps({"index": folder.name, "documents": [asdict(facts) for facts in found]}))
        return
    for facts in found:
        out.print(visible(f"{facts.source}: {_size(facts)}{_when(facts)}"), soft_wrap=True, markup=False)
    passages = sum(facts.passages for facts in found)
    out.print(f"{folder.name}: {len(found)} documents, {passages} passages", soft_wrap=True, style="dim")


def _size(facts: DocumentFacts) -> str:
    pages = "" if facts.pages is None else f"{facts.pages} pages, "
    return f"{pages}{facts.chars} characters, {facts.passages} passages"


def _when(facts: DocumentFacts) -> str:
    if facts.indexed_at is None:
        return ""
    return f", indexed {datetime.fromtimestamp(facts.indexed_at).astimezone():%Y-%m-%d %H:%M}"


@documents_cli.command(
    epilog="Examples: python app.py documents show notes/a.md -i notes   |   documents show notes/a.md --start 120"
)
def show(
    source: SourceArgument,
    index: IndexOption = None,
    start: Annotated[int | None, typer.Option(help="Show what stands around this character.")] = None,
    end: Annotated[int | None, typer.Option(help="Mark all from --start up to this character.")] = None,
    as_json: JsonOption = False,
) -> None:
    """A document's text as it was indexed; or, with --start, one place in it with its page and headings."""
    from app.commands.terminal import print_place, visible
    from app.documents.managing import whole_document
    from app.documents.places import place_in
    from indexes.errors import SettingError

    if start is None and end is not None:
        raise SettingError("--end needs --start")
    document = whole_document(_folder(index), source)
    if start is None:
        print(json.dumps(asdict(document)) if as_json else visible(document.text))
        return
    place = place_in(document, start, start + 1 if end is None else end)
    if as_json:
        print(json.dumps(place.to_json()))
    else:
        print_place(place)


@documents_cli.command(epilog="Example: python app.py documents delete notes/old.md notes/draft.pdf --index notes")
def delete(
    source: Annotated[list[str], typer.Argument(help="Sources, as `documents list` shows them.")],
    index: IndexOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take documents out of an index. Your files stay, and later runs of `index` leave them out.

    To have one in the index again, give it by its name: python app.py index notes/old.md --name notes
    """
    from app.commands.terminal import out, progress_bars, visible
    from app.documents.managing import delete_documents

    folder = _folder(index)
    with progress_bars() as progress:
        deleted = delete_documents(folder, source, progress)
    files = [str(file) for file in deleted.files]
    if as_json:
        print(json.dumps({"index": folder.name, "deleted": source, "left": deleted.left, "files_left_out": files}))
        return
    gone = "" if deleted.left else "; with the last one the index is gone"
    out.print(f"{folder.name}: {len(set(source))} documents deleted, {deleted.left} left{gone}.", soft_wrap=True)
    for file in files:
        line = f"{file} stays where it is, and is not indexed again until you give it by name."
        out.print(visible(line), soft_wrap=True, markup=False, style="dim")
