"""The command line's `index` commands: build an index of files, and look after what was built."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from app.commands.command_line import make_engine
from app.commands.options import (
    SPREAD,
    ActorsOption,
    DeviceOption,
    EncoderOption,
    JsonOption,
    ProfileOption,
    RayAddressOption,
    RerankerOption,
)
from indexes.errors import SettingError

if TYPE_CHECKING:
    from app.answering.engine import Engine
    from app.cluster.session import RayChoice
    from retrieval.workers import Workers

BUILD = "build"
EXAMPLES = (
    "Examples: python app.py index ~/notes report.pdf --name work   |   index --name work (again)   |   "
    "index info work   |   index verify work   |   index compact work   |   index delete work   |   index build --help"
)

NameArgument = Annotated[str, typer.Argument(help="The name of an index.")]


class BuildsByDefault(TyperGroup):
    """`index PATH --name NAME` is `index build PATH --name NAME`; a file called like a command is given as ./info."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command that is meant before arguments that name none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [BUILD, *args]
        return super().parse_args(ctx, args)


index_cli = typer.Typer(
    cls=BuildsByDefault,
    no_args_is_help=True,
    epilog=EXAMPLES,
    help="Index your own files under a name: index PATH... --name NAME [--rebuild]. Run it again after they change: "
    "only new and changed files are encoded. The commands below look after what was built.",
)


@index_cli.command(BUILD, epilog=EXAMPLES)
def build(
    path: Annotated[
        list[Path] | None, typer.Argument(help="Files, and folders of them: txt md html pdf docx rst.")
    ] = None,
    name: Annotated[str, typer.Option("--name", "-n", help="What to call the index.")] = "",
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Encode everything again.")] = False,
    profile: ProfileOption = None,
    encoder: EncoderOption = None,
    reranker: RerankerOption = None,
    device: DeviceOption = None,
    engine_name: Annotated[
        str, typer.Option("--engine", help="local (default) or ray: read and encode on Ray.", rich_help_panel=SPREAD)
    ] = "local",
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Index files under a name; meant when no command is given. Run it again after they change."""
    if not name:
        raise SettingError("an index needs a name: --name NAME")
    from app.cluster.session import RAY, ray_choice

    if engine_name not in ("local", RAY):
        raise SettingError(f"engine is {engine_name!r}; an index is made by local or {RAY}")
    on_ray = ray_choice(engine_name, ray_address, actors)
    engine = make_engine(profile=profile, encoder=encoder, reranker=reranker, device=device)
    from app.commands.terminal import print_report, progress_bars
    from app.documents.indexing import build_python_docs, index_files
    from retrieval.python_docs import PYTHON_DOCS

    with contextlib.ExitStack() as held, progress_bars() as progress:
        workers = _workers(engine, on_ray, held) if on_ray else None
        if name == PYTHON_DOCS and not path:
            report = build_python_docs(engine, progress, rebuild, workers)
        else:
            report = index_files(engine, engine.paths.indexes / name, path or [], progress, rebuild, workers=workers)
    print_report(name, report, as_json)


def _workers(engine: Engine, choice: RayChoice, held: contextlib.ExitStack) -> Workers:
    """Ray's, which ends with `held`."""
    from app.cluster.indexing import RayWorkers
    from app.cluster.session import ray_session
    from app.commands.terminal import say

    held.enter_context(ray_session(choice.address, say))
    return RayWorkers(engine, choice, say)


@index_cli.command(epilog="Examples: python app.py index info notes   |   index info notes --json")
def info(name: NameArgument, as_json: JsonOption = False) -> None:
    """What an index holds, what it was made with, and the segments that it consists of."""
    from app.commands.remedies import saying_what_to_do
    from indexes.maintenance import describe

    folder = _folder(name)
    with saying_what_to_do(folder, private=False):
        found = describe(folder)
    if as_json:
        print(json.dumps(found))
        return
    _print(f"{name}: {found['documents']} documents, {found['passages']} passages, {_size(found['bytes'])}")
    _print(f"encoder {found['encoder']}, {found['dimension']} dimensions, chunks of {found['chunk_chars']} characters")
    _print(f"generation {found['generation']}, format {found['format']}, vectors {found['layout']}")
    for one in found["segments"]:
        deleted = f", {one['deleted_passages']} deleted" if one["deleted_passages"] else ""
        _print(f"segment {one['name']}: {one['passages']} passages{deleted}, {one['layout']}, {_size(one['bytes'])}")
    for key, what in (("roots", "follows"), ("excluded", "leaves out")):
        for path in found[key]:
            _print(f"{what} {path}")


@index_cli.command(epilog="Example: python app.py index verify notes")
def verify(name: NameArgument, as_json: JsonOption = False) -> None:
    """Compare every byte of an index with what was written; exit code 2 names each file that differs."""
    from app.commands.remedies import saying_what_to_do
    from indexes import maintenance

    folder = _folder(name)
    with saying_what_to_do(folder, private=False):
        done = maintenance.verify(folder)
    if as_json:
        print(json.dumps({"name": name, **asdict(done)}))
    else:
        _print(f"{name}: {done.files} files, {_size(done.bytes)}: all as they were written")


@index_cli.command(epilog="Example: python app.py index compact notes")
def compact(name: NameArgument, as_json: JsonOption = False) -> None:
    """Merge an index's segments into one, and free what deleted documents take. Nothing is encoded."""
    from app.commands.remedies import saying_what_to_do
    from indexes import maintenance
    from indexes.generations import read_current

    folder = _folder(name)
    with saying_what_to_do(folder, private=False):
        before = maintenance.size_bytes(read_current(folder))
        after = maintenance.size_bytes(maintenance.compact(folder))
    if as_json:
        print(json.dumps({"name": name, "bytes_before": before, "bytes": after}))
    else:
        _print(f"{name}: {_size(before)} before, {_size(after)} now")


@index_cli.command(epilog="Example: python app.py index delete notes")
def delete(name: NameArgument, as_json: JsonOption = False) -> None:
    """Delete an index, damaged or not. Your files stay where they are."""
    from indexes.errors import IndexStoreError
    from indexes.files import remove_index
    from indexes.store import names

    folder = _folder(name)
    if name not in names(folder.parent) and not any(folder.glob("[!w]*")):
        raise IndexStoreError(f"there is no index named {name!r}; there are: {', '.join(names(folder.parent))}")
    remove_index(folder)
    if as_json:
        print(json.dumps({"name": name, "deleted": True}))
    else:
        _print(f"{name} is deleted.")


def _folder(name: str) -> Path:
    from app.setup.settings import paths
    from indexes.store import check_name

    return paths().indexes / check_name(name)


def _size(count: int) -> str:
    return f"{count / 10**6:.1f} MB"


def _print(line: Any) -> None:
    from app.commands.terminal import out, visible

    out.print(visible(line), soft_wrap=True, markup=False)
