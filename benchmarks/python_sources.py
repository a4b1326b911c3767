"""Python sources of the installed packages as a corpus of past text, and others of them held out for replay.

Which package plays which part depends on its name alone, so that nobody can choose by looking at results: the SHA-256
of the name modulo 10 is 0 for those that are replayed and reported, 1 for those that settings are chosen on, and 2 to
9 for the corpus. Copies that packages carry of each other are left out, for they would be found word for word.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from indexes.corpus import Progress

REPORTED, CHOSEN_ON = 0, 1
PARTS = 10
VENDORED = frozenset({"vendor", "_vendor", "vendored", "_vendored", "vendored_packages", "third_party", "extern"})
LINE = 30  # characters of a line that is told apart from chance
COPY = 0.5  # share of such lines that makes a file a copy
LONGEST_FILE = 2**18  # bytes; a longer file is generated, or a table


def part_of(package: str) -> int:
    """The package's part: 0 to 9, by its name."""
    return int.from_bytes(hashlib.sha256(package.encode()).digest(), "big") % PARTS


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts of files, in an order that depends on their names' hashes alone; `packages` counts those of the corpus."""

    corpus: tuple[str, ...]
    reported: tuple[str, ...]
    chosen_on: tuple[str, ...]
    packages: int


def read_sources(limit_bytes: int, replayed: int, progress: Progress, site: Path | None = None) -> Sources:
    """The corpus, at most `limit_bytes` long, and `replayed` files of each other part. `site`: where packages lie."""
    site = site or Path(sysconfig.get_paths()["purelib"])
    files = sorted((_digest(path.relative_to(site).as_posix()), path) for path in _files(site))
    seen: set[bytes] = set()
    lines: set[int] = set()
    corpus, packages, size = [], set(), 0
    for _, path in files:
        if size >= limit_bytes:
            break
        package = path.relative_to(site).parts[0]
        if part_of(package) in (REPORTED, CHOSEN_ON) or not (text := _read(path, seen)):
            continue
        corpus.append(text)
        packages.add(package)
        lines.update(_lines(text))
        size += len(text.encode())
        progress("Reading sources", min(size, limit_bytes), limit_bytes)
    progress("Reading sources", limit_bytes, limit_bytes)
    others: dict[int, list[str]] = {REPORTED: [], CHOSEN_ON: []}
    for _, path in files:
        chosen = others.get(part_of(path.relative_to(site).parts[0]))
        if chosen is not None and len(chosen) < replayed and (text := _read(path, seen)) and not _copy(text, lines):
            chosen.append(text)
    return Sources(tuple(corpus), tuple(others[REPORTED]), tuple(others[CHOSEN_ON]), len(packages))


def _files(site: Path) -> Iterator[Path]:
    for path in site.rglob("*.py"):
        if not VENDORED.intersection(path.relative_to(site).parts) and 200 <= path.stat().st_size <= LONGEST_FILE:
            yield path


def _read(path: Path, seen: set[bytes]) -> str:
    """The text of a file; "" if the same was read before, or it is no UTF-8."""
    data = path.read_bytes()
    digest = hashlib.sha256(b"".join(data.split())).digest()
    if digest in seen:
        return ""
    seen.add(digest)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _lines(text: str) -> Iterable[int]:
    return (hash(line) for line in map(str.strip, text.splitlines()) if len(line) >= LINE)


def _copy(text: str, lines: set[int]) -> bool:
    """Whether most of the long lines are those of the corpus."""
    own = list(_lines(text))
    return sum(line in lines for line in own) > COPY * len(own)
