"""The people who may log in to the chat page: names, salted hashes of their passwords, and who each of them is.

A user's `token` takes the place of the random one that a browser without login holds: everything kept for a person is
kept under it. It is drawn when the user is added, so somebody added again under an old name inherits nothing.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from indexes.errors import SettingError
from indexes.files import write_lock, write_whole

NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
LEAST_CHARS, MOST_CHARS = 8, 1000  # of a password
COST = {"n": 2**14, "r": 8, "p": 1}  # scrypt: 16 MB and about 50 ms for each attempt


@dataclass(frozen=True, slots=True)
class User:
    """One line of the file; salt and hash in hexadecimal digits."""

    name: str
    salt: str
    hash: str
    token: str


class Users:
    """The users in a folder's one file, read anew each time so that a change counts at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "users.json"

    def names(self) -> list[str]:
        """Everybody's name, sorted."""
        return sorted(self._read())

    def add(self, name: str, password: str) -> bool:
        """Add a user, or give one that is there another password; True for a new one. Raises SettingError."""
        name = _checked(name)
        if not LEAST_CHARS <= len(password) <= MOST_CHARS:
            raise SettingError(f"a password has {LEAST_CHARS} to {MOST_CHARS} characters; this one has {len(password)}")
        salt = secrets.token_bytes(16)
        with write_lock(self._folder):
            users = self._read()
            known = users.get(name)
            token = known.token if known else secrets.token_hex(16)
            self._write(users | {name: User(name, salt.hex(), _hash(password, salt), token)})
        return known is None

    def remove(self, name: str) -> None:
        """Remove a user; what was kept for them stays where it is, and nobody can reach it. Raises SettingError."""
        with write_lock(self._folder):
            users = self._read()
            if users.pop(name.lower(), None) is None:
                raise SettingError(f"there is no user {name!r}; there are: {', '.join(sorted(users)) or 'none'}")
            self._write(users)

    def check(self, name: str, password: str) -> bool:
        """Whether this is the user's password; takes the same time for a name that nobody has."""
        user = self._read().get(name.lower(), _nobody())
        right = hmac.compare_digest(_hash(password[:MOST_CHARS], bytes.fromhex(user.salt)), user.hash)
        return right and user is not _nobody()

    def token(self, name: str) -> str:
        """Who this user is. Raises SettingError if the user was removed."""
        user = self._read().get(name.lower())
        if user is None:
            raise SettingError("you are not among the users any more; ask whoever runs this page")
        return user.token

    def _read(self) -> dict[str, User]:
        try:
            return {line["name"]: User(**line) for line in json.loads(self._file.read_bytes())}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SettingError(f"{self._file} cannot be read ({error}); restore it or add the users again") from error

    def _write(self, users: dict[str, User]) -> None:
        self._folder.chmod(0o700)
        write_whole(self._file, json.dumps([asdict(user) for user in users.values()], indent=1).encode("utf-8"))


def _checked(name: str) -> str:
    if not NAME.fullmatch(name.lower()):
        raise SettingError(
            f"{name!r} cannot be a user's name; use up to 64 letters, digits, '.', '_', '@' and '-', "
            "beginning with a letter or digit (capitals do not count)"
        )
    return name.lower()


def _hash(password: str, salt: bytes) -> str:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, maxmem=2**26, **COST).hex()


@functools.cache
def _nobody() -> User:
    """Whom an unknown name is compared with."""
    salt = secrets.token_bytes(16)
    return User("", salt.hex(), _hash(secrets.token_hex(16), salt), "")
