"""The `Encoder` seam and its two kinds: sentence-transformers models, and bge-m3 through FlagEmbedding."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from indexes.errors import ModelError

Vectors = npt.NDArray[np.float32]

BATCH = 16


class Encoder(Protocol):
    """Texts in, unit vectors out. `id` is the model's id, `dimension` its D. Any thread may ask.

    Fast tokenizers serve one thread at a time, so ours take a lock for each call.
    """

    id: str
    dimension: int

    def encode_questions(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""

    def encode_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        """Dense vectors (B, D), and for each text its per-token vectors (T, D), from one pass."""


def _unit(vectors: npt.NDArray[Any]) -> Vectors:
    wide = vectors.astype(np.float32)
    norms = np.maximum(np.linalg.norm(wide, axis=-1, keepdims=True), 1e-12)
    return np.asarray(wide / norms, np.float32)


class SentenceTransformerEncoder:
    """Any sentence-transformers folder (MiniLM, bge-small); a prompt named "query" is used for questions."""

    def __init__(self, model_id: str, folder: Path, device: str) -> None:
        from sentence_transformers import SentenceTransformer

        try:
            self._model = SentenceTransformer(str(folder), device=device, local_files_only=True)
        except Exception as error:  # the library lets whatever its parts raise through
            raise ModelError(f"no sentence-transformers model could be loaded from {folder}: {error}") from error
        self.id = model_id
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self._question_prompt = "query" if self._model.prompts.get("query") else None
        self._one_at_a_time = threading.Lock()

    def _encode(self, texts: Sequence[str], **choices: Any) -> Any:
        with self._one_at_a_time:
            return self._model.encode(list(texts), batch_size=BATCH, show_progress_bar=False, **choices)

    def encode_questions(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""
        return _unit(np.asarray(self._encode(texts, prompt_name=self._question_prompt)))

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""
        return _unit(np.asarray(self._encode(texts)))

    def encode_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        """Dense vectors (B, D) and per-token vectors (T, D), special tokens left out if there are others."""
        found = self._encode(texts, output_value=None, convert_to_numpy=False)
        dense = np.stack([item["sentence_embedding"].float().cpu().numpy() for item in found])
        special = torch.tensor(self._model.tokenizer.all_special_ids)
        tokens: list[Vectors] = []
        for item in found:
            read = item["attention_mask"].bool().cpu()
            words = read & ~torch.isin(item["input_ids"].cpu(), special)
            tokens.append(_unit(item["token_embeddings"].float().cpu()[words if words.any() else read].numpy()))
        return _unit(dense), tokens


class BgeM3Encoder:
    """bge-m3 in its own library: dense vectors, and the multi-vector output as per-token vectors."""

    def __init__(self, model_id: str, folder: Path, device: str) -> None:
        from FlagEmbedding import BGEM3FlagModel

        try:
            self._model = BGEM3FlagModel(
                str(folder), use_fp16=device.startswith("cuda"), devices=[device], passage_max_length=1024
            )
        except Exception as error:  # the library lets whatever its parts raise through
            raise ModelError(f"no bge-m3 model could be loaded from {folder}: {error}") from error
        self.id = model_id
        self.dimension = int(self._model.model.model.config.hidden_size)
        self._one_at_a_time = threading.Lock()

    def _encode(self, texts: Sequence[str], tokens: bool) -> dict[str, Any]:
        with self._one_at_a_time:
            found: dict[str, Any] = self._model.encode(
                list(texts), batch_size=BATCH, return_dense=True, return_sparse=False, return_colbert_vecs=tokens
            )
        return found

    def encode_questions(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""
        return _unit(self._encode(texts, tokens=False)["dense_vecs"])

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Dense vectors (B, D)."""
        return self.encode_questions(texts)

    def encode_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        """Dense vectors (B, D) and the multi-vector output (T, D) of each text."""
        found = self._encode(texts, tokens=True)
        return _unit(found["dense_vecs"]), [_unit(vectors) for vectors in found["colbert_vecs"]]


def load_encoder(model_id: str, folder: Path, device: str) -> Encoder:
    """The encoder in a folder: bge-m3's file layout is told by its multi-vector head."""
    kind = BgeM3Encoder if (folder / "colbert_linear.pt").exists() else SentenceTransformerEncoder
    return kind(model_id, folder, device)
