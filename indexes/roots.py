"""What a damaged index is rebuilt from: the files that it follows, in two places with a checksum each."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from indexes.errors import DamagedIndexError, IndexStoreError
from indexes.files import current_generation, generations

GENERATIONS = "generations"


def with_digest(values: Any) -> bytes:
    """Values as JSON after a line that holds its SHA-256."""
    data = json.dumps(values, indent=1).encode("ascii")
    return hashlib.sha256(data).hexdigest().encode("ascii") + b"\n" + data


def values_of(whole: bytes) -> tuple[str, Any]:
    """The digest and the values of what `with_digest` wrote; none of the latter if it is damaged."""
    digest, _, data = whole.partition(b"\n")
    same = hashlib.sha256(data).hexdigest().encode("ascii") == digest
    return digest.decode("ascii", "replace"), json.loads(data) if same else None


def generation_file(folder: Path, number: int) -> Path:
    """Where a generation stands."""
    return folder / GENERATIONS / f"{number:06}.json"


def roots_file(folder: Path, number: int) -> Path:
    """Where what it follows stands once more."""
    return folder / GENERATIONS / f"{number:06}.roots.json"


def check_roots(folder: Path, number: int) -> Path:
    """The file with a generation's roots, if it is whole. Raises DamagedIndexError."""
    path = roots_file(folder, number)
    try:
        if values_of(path.read_bytes())[1] is not None:
            return path
    except OSError as error:
        raise DamagedIndexError(f"{path} is damaged: it cannot be read ({error.strerror})") from error
    raise DamagedIndexError(f"{path} is damaged: it is not what was written")


def known_settings(folder: Path) -> dict[str, Sequence[str]]:
    """The roots and excluded files of an index, if they can still be told: a damaged one is rebuilt from them."""
    found: dict[str, Sequence[str]] = {}
    for path in _telling_files(folder):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            _, values = values_of(path.read_bytes())
            if isinstance(values, list):  # format 1: a file for each
                found.setdefault(path.stem, values)
            elif values is not None:
                found = dict(values.get("settings", values)) | found
        if {"roots", "excluded"} <= found.keys():
            break
    return found


def _telling_files(folder: Path) -> list[Path]:
    """Files that tell roots: those of the generation that CURRENT names first, then the newest."""
    numbers = {int(path.name.partition(".")[0]) for path in folder.glob(f"{GENERATIONS}/[0-9]*.json")}
    current = -1
    with contextlib.suppress(IndexStoreError):
        current = int(current_generation(folder)[0].name)
    newest_first = sorted(numbers, key=lambda number: (number != current, -number))
    files = [file(folder, number) for number in newest_first for file in (generation_file, roots_file)]
    old = [old / name for old in reversed(generations(folder)) for name in ("roots.json", "excluded.json")]
    return [*files, *old]
