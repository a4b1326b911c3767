"""The tensors of a model's safetensors files, each read when it is asked for.

A model that is fused from them never lies in memory twice: what was read is dropped once it has been copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from indexes.errors import ModelError

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


class StoredTensors(Mapping[str, Tensor]):
    """Name to tensor of a Hugging Face folder, in one file or in several. Nothing is kept in memory.

    Raises ModelError, naming the folder, when it holds no such files or they cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._file_of = self._names()
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, SafetensorError) as error:
            raise ModelError(f"{folder} holds no readable {WHOLE} or {INDEX}: {error}") from error

    def _names(self) -> dict[str, Path]:
        index = self._folder / INDEX
        if not index.is_file():
            with safe_open(self._folder / WHOLE, "pt") as file:
                return dict.fromkeys(file.keys(), self._folder / WHOLE)
        listed: dict[str, str] = json.loads(index.read_text("utf-8"))["weight_map"]
        if strange := next((name for name in listed.values() if Path(name).name != name), None):
            raise ValueError(f"{INDEX} names {strange}, which is no file of this folder")
        return {tensor: self._folder / name for tensor, name in listed.items()}

    def __getitem__(self, name: str) -> Tensor:
        path = self._file_of[name]
        try:
            with safe_open(path, "pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (OSError, ValueError, SafetensorError) as error:
            raise ModelError(f"{path} cannot be read: {error}") from error
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)
