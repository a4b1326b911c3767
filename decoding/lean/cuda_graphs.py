"""Verify steps as captured CUDA graphs: the host sends one small array, launches one graph, reads one small answer.

One graph per bucket of rows (the root and its nodes, padded to 1, 8, 16, 32, 64, 128, ... rows). None per length of the
context: the kernels read the length on the device. A graph is captured when its bucket is first needed, and all are
dropped when the cache outgrows its place in memory.

What a step makes the host do, in this order, none of it waiting for the device:
  1. pack the tree with NumPy (`decoding.lean.packed`); room in the cache is a comparison of two host integers
  2. ask whether the last copy from the pinned buffer is done (an event that has long passed: whoever read the last
     step's logits waited for more than it) and fill the buffer
  3. one asynchronous copy, pinned host to device
  4. launch the graph, which contains no copy, no allocation and no read
Then `decoding.choices` reads the likeliest tokens and whether they are finite: the one wait of a step. `keep` launches
two kernels and one pinned copy when the accepted path lies scattered, else nothing.

With `exact_rows` every pass has exactly that many rows, whatever is in it, and attention is row-invariant: a token's
logits are the same bit for bit whatever was drafted around it. `rows_agree` tells whether the device's matrix products
play along.

On the CPU nothing is captured and the kernels run in Triton's interpreter: for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from decoding.lean.cache import KeyValueCache
from decoding.lean.packed import BUCKETS, Layout, pack_bits, pack_paths
from decoding.lean.shape import LeanShape
from decoding.lean.torch_model import LeanModel
from decoding.lean.torch_target import LeanTarget
from decoding.lean.triton_rows import TritonRows
from decoding.lean.weights import LeanWeights
from decoding.tree import DraftTree, Ints
from indexes.errors import SettingError

FIRST_TOKENS = 4096  # room in the cache before any graph is captured, and of each growth: it drops them all


class CapturedStep:
    """One pass of a fixed layout, replayed with other numbers. Its logits (R, V) last until the next run."""

    def __init__(self, layout: Layout, device: torch.device, compute: Callable[[Tensor], Tensor], pool: Any) -> None:
        self._packed = torch.zeros(layout.size, dtype=torch.int64, device=device)
        self._pinned = torch.zeros(layout.size, dtype=torch.int64, pin_memory=device.type == "cuda")
        self._numbers = self._pinned.numpy()
        self._compute = compute
        self._pool = pool
        self._copied: Any = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits: Tensor | None = None

    def run(self, packed: Ints) -> Tensor:
        """The logits for a packed tree."""
        if self._copied is None:
            np.copyto(self._numbers, packed)
            self._packed.copy_(self._pinned)
            return self._compute(self._packed)
        self._copied.synchronize()
        np.copyto(self._numbers, packed)
        self._packed.copy_(self._pinned, non_blocking=True)
        self._copied.record()
        if self._graph is None:
            self._capture()
        assert self._graph is not None
        assert self._logits is not None
        self._graph.replay()
        return self._logits

    def _capture(self) -> None:
        """Compute once so that kernels are compiled and workspaces allocated, then capture the same again."""
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._compute(self._packed)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._logits = self._compute(self._packed)
        self._graph = graph


class GraphVerify:
    """`Verify` (decoding.lean.torch_target) on captured graphs, one per bucket of rows.

    exact_rows  None: the fastest pass for the tree at hand. A number: every pass has so many rows, and a token's logits
                are the same bits whatever was drafted; larger trees take several passes

    Raises SettingError for float64, which the kernels do not compute, and for exact_rows below 1.
    """

    def __init__(self, model: LeanModel, cache: KeyValueCache, exact_rows: int | None = None) -> None:
        if model.dtype == torch.float64:
            raise SettingError("dtype is float64; the GPU kernels compute float32, bfloat16 and float16")
        if exact_rows is not None and exact_rows < 1:
            raise SettingError(f"exact_rows is {exact_rows}; it must be at least 1")
        self._model = model
        self._cache = cache
        self._exact_rows = exact_rows
        self._steps: dict[Layout, CapturedStep] = {}
        self._store: Tensor | None = None
        self._pool: Any = None

    def __call__(self, last: int, tree: DraftTree) -> Tensor:
        """As `Verify` says."""
        rows = len(tree) + 1
        if self._exact_rows is None:
            layout, packed = pack_bits(last, tree, self._cache.length)
            return self._step(layout, layout.rows).run(packed)[:rows]
        parts = pack_paths(last, tree, self._cache.length, self._exact_rows)
        wide = len(parts) * self._exact_rows
        if len(parts) == 1:
            return self._step(parts[0][0], wide).run(parts[0][1])[:rows]
        # The next run of a step overwrites its logits.
        return torch.cat([self._step(layout, wide).run(packed).clone() for layout, packed in parts])[:rows]

    def _step(self, layout: Layout, rows: int) -> CapturedStep:
        """The step of a layout, with room in the cache for `rows` more columns."""
        self._cache.reserve(self._cache.length + rows)
        if self._store is not self._cache.store:  # graphs hold addresses
            self._steps.clear()
            self._store = self._cache.store
            # A pool whose graphs are all gone cannot be captured into again.
            self._pool = torch.cuda.graph_pool_handle() if self._store.is_cuda else None
        if layout not in self._steps:

            def compute(packed: Tensor) -> Tensor:
                operations = TritonRows(self._model, self._cache, layout, packed, self._exact_rows is not None)
                return self._model.logits(layout.tokens(packed), operations)

            self._steps[layout] = CapturedStep(layout, self._model.device, compute, self._pool)
        return self._steps[layout]


@torch.inference_mode()
def rows_agree(model: LeanModel, rows: int) -> bool:
    """Whether every matrix product of `rows` rows gives a row the same bits at any place and with any neighbours.

    What exact mode rests on, besides its attention: to be asked once per model and device. It waits for the device.
    """
    layer = model.weights.layers[0]
    products = (
        (layer.qkv, layer.qkv_bias),
        (layer.out, layer.out_bias),
        (layer.gate_up, layer.gate_up_bias),
        (layer.down, layer.down_bias),
        (model.weights.head, None),
    )
    generator = torch.Generator(model.device).manual_seed(0)
    for weight, bias in products:
        others = torch.empty(rows, weight.shape[1], dtype=model.dtype, device=model.device)
        others.normal_(generator=generator)
        alike = others[:1].repeat(rows, 1)
        among = others.roll(rows - 1, 0)  # the first row is the last one now
        expected = linear(others, weight, bias)[0]
        if not torch.equal(linear(alike, weight, bias), expected.repeat(rows, 1)):
            return False
        if not torch.equal(linear(among, weight, bias)[-1], expected):
            return False
    return True


def graph_target(
    shape: LeanShape, weights: LeanWeights, stop_tokens: frozenset[int] | None = None, exact_rows: int | None = None
) -> LeanTarget:
    """The lean target whose trees are verified on captured graphs; see `GraphVerify` for exact_rows and errors."""
    model = LeanModel(shape, weights)
    cache = KeyValueCache(shape, model.dtype, model.device, min(shape.context_limit, FIRST_TOKENS) + BUCKETS[-1])
    cache.reserve(1)
    return LeanTarget(shape, weights, stop_tokens, GraphVerify(model, cache, exact_rows), cache)
