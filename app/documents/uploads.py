"""Files that somebody uploads on the chat page: kept and indexed apart, under a token that only their browser holds.

Everything here takes that token and never a path from a browser; the names of uploaded files are the browser's and
are not trusted.
"""

from __future__ import annotations

import re
import secrets
import shutil
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.documents.indexing import index_files, no_progress
from app.documents.managing import delete_documents, list_documents
from indexes.errors import DocumentError, IndexStoreError, NothingToIndexError, SettingError
from indexes.files import current_generation, write_lock
from indexes.passages import Document, DocumentFacts
from retrieval.documents import read_document, storable
from retrieval.indexing import Progress, Report

if TYPE_CHECKING:
    from app.answering.engine import Engine

INDEX_NAME = "my-uploads"
KEPT, INCOMING = "uploads", "incoming"  # folders beside the index; sources begin with the first
LONGEST_NAME = 150  # bytes, with the suffix
LONGEST_SUFFIX = 12
RESERVED = re.compile(r'[<>:"|?*]')  # on some file systems


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded document, and how large its file is; None if the file is gone."""

    facts: DocumentFacts
    bytes: int | None

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self.facts) | {"bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class Original:
    """An uploaded file to be sent to its owner's browser.

    Only if `inline` may a browser open it on our address: an HTML file would run its scripts there. All others are
    to be sent as attachments.
    """

    path: Path
    name: str
    media_type: str
    inline: bool


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_hex(16)


def is_token(value: object) -> bool:
    """Whether `value`, which comes from a browser, can be a token."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def private_index(engine: Engine, token: str) -> Path:
    """The folder of a browser's private index. Raises SettingError for what is no token."""
    if not is_token(token):
        raise SettingError("this browser has no token yet; reload the page")
    return engine.paths.uploads / token / INDEX_NAME


def has_uploads(engine: Engine, token: str) -> bool:
    """Whether there is a private index, whole or damaged. Raises SettingError for what is no token."""
    try:
        current_generation(private_index(engine, token))
    except IndexStoreError:
        return False
    return True


def safe_name(name: str) -> str:
    """What a file is called here: no folders, nothing invisible, not hidden, short, and still with its suffix."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", storable(name)))[-1]
    shown = "".join(character if character.isprintable() else "_" for character in RESERVED.sub("_", last))
    stem, dot, suffix = shown.strip().rpartition(".")
    if not dot or len(suffix) > LONGEST_SUFFIX:
        stem, dot, suffix = shown.strip(), "", ""
    room = LONGEST_NAME - len(f"{dot}{suffix}".encode())
    short = stem.strip(" .").encode()[:room].decode("utf-8", "ignore").rstrip(" .")
    return f"{short or 'document'}{dot}{suffix}".rstrip(". ")


def add_uploads(
    engine: Engine, token: str, files: Sequence[Path | tuple[str, Path]], progress: Progress = no_progress
) -> Report:
    """Keep the uploaded files, index them with those uploaded before, and remove the temporary ones.

    A file is a path, or what the browser called it and the path. One that cannot be read is listed in the report and
    not kept, nor does it replace an earlier one. One with the name of an earlier one replaces that; the report says
    so. Raises NothingToIndexError, saying why, when nothing can be read and there is nothing from before.
    """
    folder = private_index(engine, token)
    kept, incoming = folder.parent / KEPT, folder.parent / INCOMING
    with write_lock(folder):
        kept.mkdir(exist_ok=True)
        shutil.rmtree(incoming, ignore_errors=True)  # left there by a kill
        incoming.mkdir()
        taken = _Taken(kept)
        try:
            for done, file in enumerate(files):
                progress("Reading uploads", done, len(files))
                name, path = file if isinstance(file, tuple) else (file.name, file)
                taken.take(Path(shutil.move(path, incoming / safe_name(name))))
            progress("Reading uploads", len(files), len(files))
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        if not any(kept.iterdir()):
            raise NothingToIndexError(_nothing(taken.unreadable))
        report = index_files(engine, folder, [kept], progress, known=taken.documents)
    report.skipped = {Path(name).name: reason for name, reason in report.skipped.items()} | taken.unreadable
    report.replaced = list(taken.replaced)
    return report


@dataclass(slots=True)
class _Taken:
    """What became of uploads: documents by source, reasons by name, and names that replaced earlier files."""

    kept: Path
    documents: dict[str, Document] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, None] = field(default_factory=dict)

    def take(self, staged: Path) -> None:
        """Read a file and, if that is possible, keep it."""
        name, source = staged.name, f"{self.kept.name}/{staged.name}"
        try:
            if staged.is_symlink():
                raise DocumentError("not a regular file")
            document = read_document(staged, source)
        except DocumentError as error:
            self.unreadable[name] = str(error)
            return
        if (self.kept / name).exists():
            self.replaced[name] = None
        staged.replace(self.kept / name)
        self.documents[source] = document
        self.unreadable.pop(name, None)


def _nothing(unreadable: dict[str, str]) -> str:
    reasons = "".join(f"\n  {name}: {reason}" for name, reason in unreadable.items())
    return f"none of the files could be read, so nothing was indexed:{reasons or ' there were none'}"


def list_uploads(engine: Engine, token: str) -> list[Upload]:
    """What this browser uploaded, by name; nothing if there is no index. Raises IndexStoreError for a damaged one."""
    folder = private_index(engine, token)
    if not has_uploads(engine, token):
        return []
    sizes = {source: file.stat().st_size for source, file in _kept_files(folder).items()}
    return [Upload(facts, sizes.get(facts.source)) for facts in list_documents(folder, private=True)]


def _kept_files(folder: Path) -> dict[str, Path]:
    """The kept files by source."""
    kept = folder.parent / KEPT
    files = (file for file in kept.iterdir() if file.is_file() and not file.is_symlink()) if kept.is_dir() else ()
    return {f"{kept.name}/{storable(file.name)}": file for file in files}


def delete_uploads(engine: Engine, token: str, sources: Sequence[str], progress: Progress = no_progress) -> None:
    """Delete uploaded documents with their files, all of those named or none; with the last one the index goes.

    Files go first, for a kill in between leaves documents that are still listed and can be deleted again.
    Raises SettingError for a source that is not there, IndexStoreError.
    """
    folder = private_index(engine, token)
    there = {upload.facts.source for upload in list_uploads(engine, token)}
    if unknown := [source for source in sources if source not in there]:
        raise SettingError(f"there is no uploaded document {', '.join(map(repr, unknown))}; reload the page")
    with write_lock(folder):
        files = _kept_files(folder)
        for source in sources:
            if source in files:
                files[source].unlink(missing_ok=True)
        delete_documents(folder, sources, progress, private=True)
    if not has_uploads(engine, token):
        engine.let_go(folder)


def reindex_uploads(engine: Engine, token: str, progress: Progress = no_progress) -> Report:
    """Read and encode every kept file again; mends a damaged index.

    Raises NothingToIndexError if none can be read, SettingError if there is none; the index stays as it was.
    """
    folder = private_index(engine, token)
    if not _kept_files(folder):
        raise SettingError("there are no uploaded files to index; upload some")
    report = index_files(engine, folder, [folder.parent / KEPT], progress, rebuild=True)
    report.skipped = {Path(name).name: reason for name, reason in report.skipped.items()}
    return report


def original_upload(engine: Engine, token: str, source: str) -> Original:
    """The file behind an uploaded document of this browser's. Raises SettingError for everything else."""
    file = _kept_files(private_index(engine, token)).get(source)
    if file is None:
        raise SettingError("there is no such uploaded file; reload the page")
    pdf = file.suffix.lower() == ".pdf"
    return Original(file, storable(file.name), "application/pdf" if pdf else "application/octet-stream", pdf)
