"""A Llama-family model on a CPU: weights packed once, and one compiled function per forward pass.

It is exact in every number format: the logits of a token have the same bits whether it was read in a prompt, alone, or
as a node of any draft tree, so drafted decoding gives plain decoding's tokens in bfloat16 and int8 too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from decoding.cache_memory import CacheMemory, of_arrays
from decoding.lean.cpu_attention import move_slots
from decoding.lean.cpu_layout import Pass, Rows, Sizes
from decoding.lean.cpu_packing import aligned, pack_weights
from decoding.lean.cpu_step import COUNTER, LAST_STAGES, STAGES, run_pass
from decoding.lean.cpu_tiles import BF16, COLUMNS, F32, GROUP, INT8, MOST_ROWS
from decoding.lean.shape import LeanShape
from decoding.lean.weights import LeanWeights
from decoding.target import Snapshot
from decoding.tree import EMPTY, DraftTree, depths
from indexes.errors import DraftTreeError, PromptTooLongError, SettingError

KINDS = {"float32": F32, "bfloat16": BF16, "int8": INT8}
PROMPT_ROWS = 512  # rows of a prompt that are read in one pass
GROWTH = 128  # slots: copying all of them so rarely costs a hundredth of what attention reads of them in between


class CpuLeanTarget:
    """`TargetModel` for one model and one sequence at a time.

    number_format is that of weights and products: float32, bfloat16 or int8; keys and values are kept in float32 with
    the first, else in bfloat16. Raises UnsupportedModelError for sizes that do not fill vectors.
    """

    def __init__(
        self,
        shape: LeanShape,
        weights: LeanWeights,
        number_format: str,
        stop_tokens: frozenset[int] | None = None,
        threads: int | None = None,
    ) -> None:
        if number_format not in KINDS:
            raise SettingError(f"number format {number_format!r} is unknown here; choose {', '.join(KINDS)}")
        self._kind = KINDS[number_format]
        self._shape = shape
        self._weights = pack_weights(shape, weights, self._kind)
        self._embed = _numbers(weights.embed, self._kind)
        self._number = np.dtype(np.float32 if self._kind == F32 else np.uint16)
        self._group = 4 // self._number.itemsize
        self._sizes = Sizes(
            self._kind, shape.layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, shape.intermediate,
            shape.qk_norm, np.float32(shape.norm_eps), np.float32(shape.head_dim**-0.5),
        )  # fmt: skip
        self._threads = max(1, threads or torch.get_num_threads())
        self._process = os.getpid()
        self._others = ThreadPoolExecutor(self._threads - 1, "forward") if self._threads > 1 else None
        self._committed = 0
        self._slots = 0
        self._keys: Any = None
        self._values: Any = None
        self._rows: Rows | None = None
        self._logits = aligned((0, COLUMNS), np.float32)
        self.vocabulary = shape.vocabulary
        self.context_limit = shape.context_limit
        self.stop_tokens = shape.stop_tokens if stop_tokens is None else stop_tokens
        self.kind = f"lean, kernels for the CPU, {self._threads} threads"
        self._reserve(0)

    @property
    def length(self) -> int:
        """Number of tokens kept in the cache."""
        return self._committed

    @property
    def cache_memory(self) -> CacheMemory:
        """Bytes of keys and values; as scratch those of attention's scores and weights, which grow with them."""
        scratch = self._rows.scores.nbytes + self._rows.weights.nbytes if self._rows is not None else 0
        return of_arrays(self._keys.nbytes + self._values.nbytes, self._slots, self._committed, scratch)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the packed weights, and of the embedding, which is not packed."""
        return sum(int(array.nbytes) for array in (*self._weights, self._embed))

    def prefill(self, tokens: Sequence[int], cached: int = 0) -> torch.Tensor:
        """Read the prompt behind the `cached` first tokens: logits (V,) after its last token, until the next pass.

        Raises PromptTooLongError for more tokens than the model has positions, and none at all.
        """
        if not 0 <= cached < len(tokens) <= self.context_limit or cached > self._committed:
            raise PromptTooLongError(
                f"the prompt has {len(tokens)} tokens, {cached} of them said to be in the cache of {self._committed}; "
                f"the model reads 1 to {self.context_limit}, the last one always"
            )
        self.truncate(cached)
        self._reserve(len(tokens))
        for start in range(cached, len(tokens), PROMPT_ROWS):
            some = tokens[start : start + PROMPT_ROWS]
            last = start + len(some) == len(tokens)
            count = np.arange(len(some))
            logits = self._pass(some, count, np.broadcast_to(count, (len(some), len(some))), int(last))
            self._committed += len(some)
        return logits[0]

    def forward(self, last: int, tree: DraftTree = EMPTY) -> torch.Tensor:
        """Read the last token and a tree: logits (N + 1, V), which last until the next pass.

        Nothing of it stays without `keep`.
        """
        depth = np.concatenate([[0], depths(tree)])
        paths = np.zeros((len(depth), int(depth.max()) + 1), np.int64)
        for node, parent in enumerate(tree.parents.tolist(), 1):
            paths[node] = paths[parent + 1]
            paths[node, depth[node]] = node
        return self._pass([last, *tree.tokens.tolist()], depth, paths, len(depth))

    def keep(self, path: Sequence[int]) -> None:
        """Commit the root and the nodes of `path`; drop the rest of the last tree."""
        kept = np.array([0, *(node + 1 for node in path)])
        if self._committed + int(kept.max()) >= self._slots or int(kept.min()) < 0:
            raise DraftTreeError(f"path {list(path)} leads out of the tree that was read last")
        if kept[-1] != len(path):
            move_slots(self._keys, self._values, self._committed, kept)
        self._committed += len(kept)

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens of the cache."""
        self._committed = max(0, min(length, self._committed))

    def snapshot(self) -> Snapshot:
        """A copy of keys and values, in whole panels."""
        panels = -(-self._committed // COLUMNS)
        keys = self._keys[:, :, :panels].copy()
        values = self._values[:, :, : panels * COLUMNS // self._group].copy()
        return Snapshot(self._committed, keys.nbytes + values.nbytes, (keys, values))

    def restore(self, snapshot: Snapshot) -> None:
        """Make the cache what it was when the snapshot was taken."""
        keys, values = snapshot.parts
        self._reserve(snapshot.length)
        self._keys[:, :, : keys.shape[2]] = keys
        self._values[:, :, : values.shape[2]] = values
        self._committed = snapshot.length

    def _pass(self, tokens: Sequence[int], depth: Any, paths: Any, wanted: int) -> torch.Tensor:
        """Read tokens at their places: logits (wanted, V) of the last ones."""
        count = len(tokens)
        self._reserve(self._committed + count)
        rows = self._room(count)
        _widen(self._embed[np.asarray(tokens)], rows.state[:count])
        if wanted > len(self._logits):
            self._logits = aligned((wanted, -(-self.vocabulary // COLUMNS) * COLUMNS), np.float32)
        logits = self._logits[:wanted]
        positions = np.minimum(self._committed + depth, self.context_limit - 1)
        now = Pass(self._committed, positions, np.ascontiguousarray(paths), depth, logits)
        counters = aligned((self._sizes.layers * STAGES + LAST_STAGES, COUNTER), np.int64)
        work = (self._sizes, self._weights, rows, (self._keys, self._values), now, counters)
        for thread in range(1, self._threads if os.getpid() == self._process else 1):  # after a fork: alone
            with contextlib.suppress(RuntimeError):  # the interpreter is ending: then alone
                assert self._others is not None
                self._others.submit(run_pass, *work, thread, self._threads)
        run_pass(*work, 0, self._threads)
        return torch.from_numpy(logits)[:, : self.vocabulary]

    def _reserve(self, slots: int) -> None:
        """Have room for so many tokens in the cache, and in the memory that attention needs for them.

        There is room for `GROWTH` more after a prompt, and whenever it has run out: never more than that is unused.
        """
        if slots <= self._slots and self._slots:
            return
        grown = -(-slots // COLUMNS) * COLUMNS + GROWTH
        shape, group = self._shape, self._group
        per_layer = (shape.layers, shape.kv_heads)
        # One after the other, so that not both are there twice. Of what was there nothing but committed slots counts.
        panels, groups = -(-self._committed // COLUMNS), -(-self._committed // group)
        keys = aligned((*per_layer, grown // COLUMNS, shape.head_dim // group, COLUMNS, group), self._number)
        if panels:
            keys[:, :, :panels] = self._keys[:, :, :panels]
        self._keys = keys
        values = aligned((*per_layer, grown // group, shape.head_dim, group), self._number)
        if groups:
            values[:, :, :groups] = self._values[:, :, :groups]
        self._values, self._slots, self._rows = values, grown, None

    def _room(self, count: int) -> Rows:
        """The memory of a pass over so many rows."""
        if self._rows is not None and count <= len(self._rows.state):
            return self._rows
        shape, number, threads = self._shape, self._number, self._threads
        each, heads = -(-count // 64) * 64, shape.heads // shape.kv_heads
        qkv = -(-(shape.query_width + 2 * shape.kv_width) // COLUMNS) * COLUMNS
        wide = max(qkv, -(-2 * shape.intermediate // COLUMNS) * COLUMNS)
        line = max(shape.intermediate, shape.hidden, shape.query_width, 2 * shape.head_dim)
        deepest = max(shape.intermediate, shape.hidden, shape.query_width) * 4 // GROUP[self._kind]
        tile = max(MOST_ROWS, heads)
        self._rows = Rows(
            state=aligned((each, shape.hidden), np.float32),
            left=aligned((each, deepest), np.uint8),
            units=aligned((each,), np.float32),
            wide=aligned((each, wide), np.float32),
            queries=aligned((shape.kv_heads, each, heads, shape.head_dim), number),
            attended=aligned((each, shape.kv_heads, heads, shape.head_dim), np.float32),
            line=aligned((threads, -(-line // 16) * 16), np.float32),
            scores=aligned((threads, tile, self._slots), np.float32),
            weights=aligned((threads, tile, self._slots), number),
            sums=aligned((threads, tile, shape.head_dim), np.float32),
            totals=aligned((threads, tile), np.float32),
            gathered=aligned((threads, each + 2, shape.head_dim, self._group), number),
        )
        return self._rows


def _numbers(embedding: torch.Tensor, kind: int) -> Any:
    """The embedding (V, H) as float32, or as the bits of bfloat16."""
    if kind == F32:
        return embedding.float().numpy()
    return embedding.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


def _widen(rows: Any, into: Any) -> None:
    """Rows of the embedding as float32. Not by PyTorch, whose threads would go on spinning beside the pass."""
    if rows.dtype == np.float32:
        into[:] = rows
    else:
        np.left_shift(rows, 16, out=into.view(np.uint32), dtype=np.uint32)
