"""What tests of datastores share: small texts, and stores whose contents somebody changed who knows checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from indexes.crest import CrestStore
from indexes.crest_build import DEFAULTS, CrestSettings, build_crest
from indexes.files import CURRENT, MANIFEST, current_generation
from indexes.suffix_array import SEGMENT, RestStore, build_rest

HASH = "a tokenizer"
VOCABULARIES = st.sampled_from([6, 70_000])  # ids of two bytes and of three
TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=15), min_size=1, max_size=4).filter(
    lambda texts: any(len(text) > 1 for text in texts)
)


def crest(
    folder: Path, texts: Sequence[Sequence[int]], settings: CrestSettings = DEFAULTS, vocabulary: int = 6
) -> CrestStore:
    build_crest(folder, texts, HASH, vocabulary, settings)
    return CrestStore(folder, HASH)


def rest(folder: Path, texts: Sequence[Sequence[int]], vocabulary: int = 6, segment: int = SEGMENT) -> RestStore:
    build_rest(folder, texts, HASH, vocabulary, segment=segment)
    return RestStore(folder, HASH)


def forge(folder: Path, files: dict[str, bytes] | None = None, **values: Any) -> None:
    """Change files and values of the manifest, and all checksums with them."""
    generation, _ = current_generation(folder)
    manifest = json.loads((generation / MANIFEST).read_bytes()) | values
    for name, data in (files or {}).items():
        (generation / name).write_bytes(data)
        manifest["files"][name] = hashlib.sha256(data).hexdigest()
        manifest["sizes"][name] = len(data)
    forge_manifest(folder, json.dumps(manifest).encode())


def forge_manifest(folder: Path, data: bytes) -> None:
    """Put any bytes in place of the manifest, with the right checksum."""
    generation, _ = current_generation(folder)
    (generation / MANIFEST).write_bytes(data)
    (folder / CURRENT).write_text(f"{generation.name} {hashlib.sha256(data).hexdigest()}")


def continuations(texts: Sequence[Sequence[int]], ngram: Sequence[int], depth: int) -> list[list[int]]:
    """Up to `depth` tokens after each occurrence of an n-gram, sorted; none for an occurrence at a text's end."""
    n = len(ngram)
    found: list[list[int]] = []
    for text in texts:
        starts = [start for start in range(len(text) - n) if list(text[start : start + n]) == list(ngram)]
        found.extend(list(text[start + n : start + n + depth]) for start in starts)
    return sorted(found)
