"""Builds, finds and checks datastores of past text: what the drafters REST and CREST copy from.

Reads text files as they are (code and Markdown too: a model writes markup), one text per file or per line of a .jsonl
file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from app.setup.settings import Paths
from decoding.tokenizer_hash import tokenizer_hash
from indexes import crest, suffix_array
from indexes.corpus import Progress, no_progress
from indexes.crest_build import CrestSettings, build_crest
from indexes.datastore import names, read_store, size_bytes, verify_contents
from indexes.errors import IndexStoreError, NothingToIndexError, SettingError
from indexes.store import check_name
from indexes.suffix_array import build_rest

KINDS = (crest.KIND, suffix_array.KIND)
SUFFIXES = (".txt", ".md", ".rst", ".py", ".pyi", ".jsonl")
FIELDS = ("text", "answer", "output", "response", "completion", "content")
PIECE = 2**20  # characters tokenised at once; a longer text is cut

BUILD = "python app.py datastore build PATH... --name {name}"


@dataclass(slots=True)
class Report:
    """What a build did; `skipped` maps a file to the reason."""

    name: str
    kind: str
    files: int = 0
    texts: int = 0
    tokens: int = 0
    bytes: int = 0
    build_s: float = 0.0
    skipped: dict[str, str] = field(default_factory=dict)


def datastore_folder(paths: Paths, name: str | None) -> Path | None:
    """The folder of the datastore with this name; None if none was chosen.

    Raises SettingError for what cannot be a name, IndexStoreError listing what there is for an unknown one.
    """
    if name is None:
        return None
    folder = paths.datastores / check_name(name, "a datastore")
    known = names(paths.datastores)
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none yet"
        raise IndexStoreError(f"there is no datastore {name!r} ({there}); build it with: {BUILD.format(name=name)}")
    return folder


def build(
    paths: Paths,
    report: Report,
    given: Sequence[Path],
    tokenizer: Any,
    settings: CrestSettings,
    progress: Progress = no_progress,
) -> Report:
    """Build the datastore that `report` names from files and folders, in place of what it held, and complete the
    report.

    Raises SettingError for what cannot be, NothingToIndexError listing why no file could be read.
    """
    folder = paths.datastores / check_name(report.name, "a datastore")
    if report.kind not in KINDS:
        raise SettingError(f"unknown kind {report.kind!r}; choose one of {', '.join(KINDS)}")
    if missing := [str(path) for path in given if not path.exists()]:
        raise SettingError(f"there is no file or folder {', '.join(map(repr, missing))}")
    start = time.perf_counter()
    hashed, vocabulary = tokenizer_hash(tokenizer), max(tokenizer.get_vocab().values()) + 1
    texts = _tokenised(_texts(given, report, progress), tokenizer, report)
    try:
        if report.kind == suffix_array.KIND:
            build_rest(folder, texts, hashed, vocabulary, progress)
        else:
            build_crest(folder, texts, hashed, vocabulary, settings, progress)
    except NothingToIndexError as error:
        reasons = "".join(f"\n  {file}: {reason}" for file, reason in report.skipped.items())
        raise NothingToIndexError(f"{error}{reasons}; files read are those with {', '.join(SUFFIXES)}") from error
    report.bytes, report.build_s = size_bytes(folder), time.perf_counter() - start
    return report


def _tokenised(texts: Iterator[str], tokenizer: Any, report: Report) -> Iterator[list[int]]:
    encode: Callable[..., list[int]] = tokenizer.encode
    for text in texts:
        for start in range(0, len(text), PIECE):
            ids = encode(text[start : start + PIECE], add_special_tokens=False)
            report.texts += 1
            report.tokens += len(ids)
            yield ids


def _texts(given: Sequence[Path], report: Report, progress: Progress) -> Iterator[str]:
    """The texts of all files; what cannot be read is noted in the report."""
    files = list(dict.fromkeys(file for path in given for file in _files(path, report)))
    for done, file in enumerate(files):
        progress("Reading files", done, len(files))
        try:
            text = file.read_bytes().decode("utf-8-sig")
        except OSError as error:
            report.skipped[str(file)] = f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            report.skipped[str(file)] = "not UTF-8 text"
        else:
            report.files += 1
            yield from _lines(file, text, report) if file.suffix == ".jsonl" else [text]
    progress("Reading files", len(files), len(files))


def _files(path: Path, report: Report) -> Iterator[Path]:
    """The file itself, or the text files of a folder, sorted; hidden ones and links to folders left out."""
    if not path.is_dir():
        yield path
        return

    def skip(error: OSError) -> None:
        report.skipped[str(error.filename)] = f"cannot be read: {error.strerror}"

    for folder, folders, files in os.walk(path, onerror=skip):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            file = Path(folder, name)
            if file.suffix.lower() in SUFFIXES and not name.startswith(".") and file.is_file():
                yield file


def _lines(file: Path, text: str, report: Report) -> Iterator[str]:
    """One text per line of JSON: a string, or the first of FIELDS that an object has."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            value = next((value[key] for key in FIELDS if isinstance(value.get(key), str)), None)
        if isinstance(value, str):
            yield value.encode("utf-8", "replace").decode("utf-8")  # JSON can hold lone surrogates
        else:
            report.skipped.setdefault(
                f"{file}:{number}", f"not a JSON string, nor an object with one of {', '.join(FIELDS)}"
            )


def listed(paths: Paths) -> list[dict[str, Any]]:
    """Name, kind and size of every datastore, or what is wrong with it."""
    found: list[dict[str, Any]] = []
    for name in names(paths.datastores):
        folder = paths.datastores / name
        try:
            found.append({"name": name, "kind": read_store(folder).values["kind"], "bytes": size_bytes(folder)})
        except IndexStoreError as error:
            found.append({"name": name, "error": str(error)})
    return found


def verify(paths: Paths, name: str) -> dict[str, Any]:
    """Compare every byte of a datastore with what was written. Raises DamagedIndexError naming the file."""
    folder = datastore_folder(paths, name)
    assert folder is not None
    opened = verify_contents(folder)
    return {"name": name, "kind": opened.values["kind"], "bytes": size_bytes(folder), "ok": True}


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON has it."""
    return asdict(report)
