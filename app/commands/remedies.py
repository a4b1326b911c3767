"""What to do about an index that is missing, damaged or old: said together with what is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from indexes.errors import DamagedIndexError, IndexFormatError, IndexStoreError


@contextlib.contextmanager
def saying_what_to_do(folder: Path, private: bool) -> Iterator[None]:
    """Opening an index in here, a missing, damaged or old one is told with what to do about it."""
    try:
        yield
    except (DamagedIndexError, IndexFormatError) as error:
        if again(folder, private) in str(error):
            raise
        raise type(error)(f"{error}; {again(folder, private)}") from error
    except IndexStoreError as error:
        first = "upload files first" if private else f"build it with: python app.py index PATH... --name {folder.name}"
        raise IndexStoreError(f"{error}; {first}") from error


def again(folder: Path, private: bool) -> str:
    """How an index is made anew."""
    return (
        "re-index your uploads" if private else f"rebuild it with: python app.py index --rebuild --name {folder.name}"
    )
