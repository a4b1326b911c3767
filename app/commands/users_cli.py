"""The command line's `users` commands: who may log in to the chat page."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from app.commands.options import JsonOption

users_cli = typer.Typer(no_args_is_help=True, help="Who may log in to the chat page when it is run with --auth.")

NameArgument = Annotated[str, typer.Argument(help="The user's name; capitals do not count.")]


@users_cli.command(epilog="Examples: python app.py users add anna   |   echo $PASSWORD | python app.py users add anna")
def add(name: NameArgument) -> None:
    """Add a user, or change a user's password; it is asked for here, or read from standard input."""
    from app.commands.terminal import say
    from app.page.users import Users
    from app.setup.settings import paths

    if sys.stdin.isatty():
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    new = Users(paths().users).add(name, password)
    say(f"{name.lower()} was added." if new else f"{name.lower()} has a new password.")


@users_cli.command(epilog="Example: python app.py users remove anna")
def remove(name: NameArgument) -> None:
    """Remove a user, who cannot log in or ask any more from now on; their files and chats stay on the disk."""
    from app.commands.terminal import say
    from app.page.users import Users
    from app.setup.settings import paths

    Users(paths().users).remove(name)
    say(f"{name.lower()} was removed.")


@users_cli.command("list", epilog="Example: python app.py users list --json")
def list_users(as_json: JsonOption = False) -> None:
    """List the users' names."""
    from app.page.users import Users
    from app.setup.settings import paths

    names = Users(paths().users).names()
    print(json.dumps({"users": names}) if as_json else "\n".join(names))
