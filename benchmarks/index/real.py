"""Real text that every machine has: paragraphs of the docstrings of installed packages, for the profile's encoder.

Which paragraphs are questions is chance, from a seed; these are not in the index.
"""

from __future__ import annotations

import ast
import hashlib
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.python_sources import LONGEST_FILE
from indexes.errors import SettingError
from retrieval.encoders import Encoder
from retrieval.indexing import Progress

SHORTEST, LONGEST = 80, 600  # characters
ENCODED_AT_ONCE = 2048  # the encoder puts texts of like length together


@dataclass(frozen=True, slots=True)
class Real:
    """Passages that were encoded."""

    passages: tuple[str, ...]
    dimension: int

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.passages)

    def texts(self, progress: Progress) -> Iterator[str]:
        """The passages' texts."""
        for done, text in enumerate(self.passages):
            progress("Indexing passages", done, self.count)
            yield text


def read_paragraphs(count: int, progress: Progress, site: Path | None = None) -> list[str]:
    """So many different paragraphs, in an order that depends on files' names alone. Raises SettingError for too few."""
    site = site or Path(sysconfig.get_paths()["purelib"])
    files = sorted(
        site.rglob("*.py"), key=lambda path: hashlib.sha256(path.relative_to(site).as_posix().encode()).digest()
    )
    found: dict[str, None] = {}
    for path in files:
        if path.stat().st_size > LONGEST_FILE:
            continue
        for docstring in _docstrings(path):
            parts = (" ".join(part.split()) for part in docstring.split("\n\n"))
            found |= dict.fromkeys(part for part in parts if SHORTEST <= len(part) <= LONGEST)
        progress("Reading docstrings", min(len(found), count), count)
        if len(found) >= count:
            return list(found)[:count]
    raise SettingError(
        f"the installed packages have {len(found)} paragraphs of documentation; ask for fewer than {count}"
    )


def _docstrings(path: Path) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def encode(texts: Sequence[str], encoder: Encoder, path: Path, progress: Progress) -> None:
    """Write the vectors (N, D), in half precision, as the .npy file `path`."""
    parts = []
    for at in range(0, len(texts), ENCODED_AT_ONCE):
        progress("Encoding passages", at, len(texts))
        parts.append(np.asarray(encoder.encode_passages(texts[at : at + ENCODED_AT_ONCE]), np.float16))
    progress("Encoding passages", len(texts), len(texts))
    scratch = path.with_suffix(".part")
    with scratch.open("wb") as file:
        np.save(file, np.concatenate(parts))
    scratch.replace(path)
