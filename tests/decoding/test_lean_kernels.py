"""The Triton kernels against plain PyTorch: on a GPU as compiled, elsewhere in Triton's interpreter.

Triton comes with PyTorch's CUDA builds, and elsewhere on Linux with tests/requirements.txt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytest.importorskip("triton")

from decoding.lean import triton_attention  # noqa: E402
from decoding.lean.cuda_graphs import GraphVerify, graph_target, rows_agree  # noqa: E402
from decoding.lean.packed import pack_bits, pack_paths  # noqa: E402
from decoding.lean.shape import read_shape  # noqa: E402
from decoding.lean.torch_model import LeanModel, rms_norm, rotated  # noqa: E402
from decoding.lean.torch_target import LeanTarget  # noqa: E402
from decoding.lean.triton_attention import path_attention, tree_attention, tree_splits  # noqa: E402
from decoding.lean.triton_pointwise import add_norm, gate, rotate  # noqa: E402
from decoding.lean.weights import read_weights  # noqa: E402
from decoding.tree import EMPTY, DraftTree, ancestor_mask, chain, make_tree  # noqa: E402
from indexes.errors import SettingError  # noqa: E402
from tests.decoding.tiny import ARCHITECTURES, CONTEXT, lean_target, prompt_tokens, tiny_model  # noqa: E402

PROMPT = prompt_tokens(0)
TREE = make_tree([9, 10, 11, 12, 13, 14], [-1, -1, 0, 1, 3, 4])
WIDE = make_tree(range(1, 70), [-1, *range(-1, 67)])  # 70 rows: two words of bits
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def randn(*size: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def on_device(packed: Any) -> torch.Tensor:
    return torch.from_numpy(packed).to(DEVICE)


def reference(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, length: int, tree: DraftTree) -> Any:
    """Attention (N + 1, Q) in float64 with a whole mask: prefix, root and ancestors."""
    rows = len(tree) + 1
    mask = torch.ones(rows, length + rows, dtype=torch.bool)
    mask[:, length + 1 :] = False
    mask[1:, length + 1 :] = torch.from_numpy(ancestor_mask(tree))
    group = query.shape[1] // len(keys)
    keys, values = (store[:, : length + rows].double().repeat_interleave(group, 0) for store in (keys, values))
    scores = torch.einsum("rhd,hsd->hrs", query[:rows].double(), keys) * query.shape[2] ** -0.5
    weights = scores.masked_fill(~mask.to(DEVICE), float("-inf")).softmax(-1)
    return torch.einsum("hrs,hsd->rhd", weights, values).flatten(1)


def both_attentions(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, length: int, tree: DraftTree, splits: int = 4
) -> list[torch.Tensor]:
    rows = len(tree) + 1
    layout, packed = pack_bits(1, tree, length)
    numbers = on_device(packed)
    found = tree_attention(query[: layout.rows], keys, values, numbers[:2], layout.seen(numbers), splits)
    layout, packed = pack_paths(1, tree, length, rows)[0]
    numbers = on_device(packed)
    query = query[:rows]
    exact = path_attention(query, keys, values, numbers[:2], layout.depths(numbers), layout.seen(numbers))
    return [found[:rows], exact]


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("tree", [EMPTY, TREE], ids=["plain", "tree"])
def test_attention_sees_the_prefix_and_the_ancestors(length: int, tree: DraftTree) -> None:
    query, keys, values = randn(8, 4, 16), randn(2, 260, 16, seed=1), randn(2, 260, 16, seed=2)
    expected = reference(query, keys, values, length, tree)
    for found in both_attentions(query, keys, values, length, tree):
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16] if DEVICE == "cuda" else [torch.float16])
@pytest.mark.parametrize(("heads", "kv", "width"), [(3, 1, 64), (2, 2, 12), (8, 1, 128)])
def test_attention_with_other_groups_and_widths_in_half_precision(
    dtype: torch.dtype, heads: int, kv: int, width: int
) -> None:
    query = randn(8, heads, width, dtype=dtype)
    keys, values = randn(kv, 128, width, dtype=dtype, seed=1), randn(kv, 128, width, dtype=dtype, seed=2)
    expected = reference(query, keys, values, 90, TREE)
    for found in both_attentions(query, keys, values, 90, TREE):
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=TOLERANCE[dtype])


def test_attention_over_a_tree_of_more_rows_than_a_word_has_bits() -> None:
    query, keys, values = randn(128, 2, 16), randn(1, 200, 16, seed=1), randn(1, 200, 16, seed=2)
    layout, packed = pack_bits(1, WIDE, 40)
    numbers = on_device(packed)
    found = tree_attention(query, keys, values, numbers[:2], layout.seen(numbers), 2)
    expected = reference(query, keys, values, 40, WIDE)
    torch.testing.assert_close(found[:70].double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("processors", [1, 132])
def test_splits_are_a_power_of_two_with_one_for_the_tree(rows: int, processors: int) -> None:
    splits = tree_splits(rows, 32, 8, torch.bfloat16, processors)
    assert splits >= 2
    assert splits & (splits - 1) == 0


@pytest.mark.parametrize("length", [5, 61, 64, 130])
def test_path_attention_gives_the_same_bits_wherever_the_ancestors_lie(length: int) -> None:
    query, keys, values = randn(8, 4, 16), randn(2, 200, 16, seed=1), randn(2, 200, 16, seed=2)
    drafted = both_attentions(query, keys, values, length, TREE)[1]
    for row, path in ((3, [0, 1]), (6, [0, 2, 4, 5])):  # rows of the pass: the row itself, and its ancestors
        plain_keys, plain_values = keys.clone(), values.clone()
        for place, ancestor in enumerate([*path, row]):
            plain_keys[:, length + place] = keys[:, length + ancestor]
            plain_values[:, length + place] = values[:, length + ancestor]
        plain = both_attentions(query[row:], plain_keys, plain_values, length + len(path), EMPTY)[1]
        assert torch.equal(plain[0], drafted[row])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_pointwise_kernels_compute_what_plain_pytorch_does(dtype: torch.dtype) -> None:
    stream, update, weight = (
        randn(3, 40, dtype=dtype),
        randn(3, 40, dtype=dtype, seed=1),
        randn(40, dtype=dtype, seed=2),
    )
    summed, normed = add_norm(stream, update, weight, 1e-6)
    torch.testing.assert_close(summed, stream + update, rtol=0, atol=TOLERANCE[dtype])
    torch.testing.assert_close(normed, rms_norm(stream + update, weight, 1e-6), rtol=0, atol=TOLERANCE[dtype])
    assert add_norm(stream, None, weight, 1e-6)[0] is stream
    opened = torch.nn.functional.silu(stream[:, :20]) * stream[:, 20:]
    torch.testing.assert_close(gate(stream), opened, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("normed", [False, True])
def test_rotation_writes_keys_and_values_behind_the_prefix(normed: bool) -> None:
    qkv, cos, sin = randn(3, 8 * 12), randn(30, 6), randn(30, 6, seed=1)
    cos, sin = cos.repeat(1, 2), sin.repeat(1, 2)
    keys, values = torch.zeros(2, 40, 12, device=DEVICE), torch.zeros(2, 40, 12, device=DEVICE)
    norm = randn(12, seed=4) if normed else None
    header, depths = on_device(np.array([20, 4])), on_device(np.array([0, 2, 50]))  # the third is past the tables
    query = rotate(qkv, header, depths, (cos, sin), (norm, norm), (keys, values), 4, 1e-6)
    heads = qkv.view(3, 8, 12)
    turned = heads[:, :6] if norm is None else rms_norm(heads[:, :6], norm, 1e-6)
    at = [20, 22, 29]
    turned = rotated(turned, cos[at], sin[at])
    torch.testing.assert_close(query, turned[:, :4])
    torch.testing.assert_close(keys[:, 24:27], turned[:, 4:].transpose(0, 1))
    assert torch.equal(values[:, 24:27], heads[:, 6:].transpose(0, 1))
    assert not keys[:, :24].any()
    assert not keys[:, 27:].any()


def made(name: str, exact_rows: int | None) -> tuple[LeanTarget, LeanTarget]:
    """The target on kernels and the eager one, of one model."""
    model = tiny_model(*ARCHITECTURES[name]).float().to(DEVICE)
    shape = read_shape(model.config)
    weights = read_weights(shape, model.state_dict(), model.config, torch.float32, DEVICE)
    return graph_target(shape, weights, exact_rows=exact_rows), lean_target(model)


@pytest.fixture
def few_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that find no column cost nothing on a GPU, and seconds in the interpreter."""
    monkeypatch.setattr(triton_attention, "PATH_SPLITS", 2)


@pytest.mark.usefixtures("few_splits")
@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("exact_rows", [None, 4], ids=["fast", "exact, in parts"])
def test_a_target_on_kernels_gives_the_logits_of_the_eager_one(name: str, exact_rows: int | None) -> None:
    found, expected = made(name, exact_rows)
    for target in (found, expected):
        target.prefill(PROMPT)
    torch.testing.assert_close(found.forward(8, TREE), expected.forward(8, TREE), rtol=0, atol=1e-4)
    for target in (found, expected):
        target.keep([1, 3, 4])
    assert found.length == expected.length == len(PROMPT) + 4
    torch.testing.assert_close(found.forward(15), expected.forward(15), rtol=0, atol=1e-4)


def test_the_cache_may_grow_between_steps_on_kernels() -> None:
    found, expected = made("llama", None)
    for target in (found, expected):
        target.prefill(PROMPT[:2])
        target.forward(8, TREE)
        target._cache.store = target._cache.store[:, :, :, :9].clone()  # as small as it can be
        target.keep([1, 3, 4])
    torch.testing.assert_close(found.forward(15, TREE), expected.forward(15, TREE), rtol=0, atol=1e-4)


def test_rows_past_the_context_limit_do_no_harm_on_kernels() -> None:
    found, expected = made("llama", None)
    for target in (found, expected):
        target.prefill(prompt_tokens(2, CONTEXT - 3))
    got = found.forward(8, chain(range(6)))
    torch.testing.assert_close(got[:3], expected.forward(8, chain([0, 1])), rtol=0, atol=1e-4)
    assert bool(got.isfinite().all())


@pytest.mark.usefixtures("few_splits")
def test_exact_logits_are_the_same_bits_whatever_was_drafted() -> None:
    target, _ = made("llama", 4)
    if not rows_agree(target._model, 4):
        pytest.skip("this machine's matrix products depend on the rows")
    text = [8, 10, 12, 13]  # the root and a path of TREE: nodes 1, 3 and 4
    target.prefill(PROMPT)
    plain = []
    for token in text:
        plain.append(target.forward(token)[0].clone())
        target.keep([])
    target.prefill(PROMPT)
    drafted = target.forward(8, TREE).clone()
    assert torch.equal(torch.stack(plain), drafted[[0, 2, 4, 5]])
    target.keep([1, 3, 4])
    after = target.forward(3, TREE).clone()
    target.prefill(PROMPT)
    for token in text:
        target.forward(token)
        target.keep([])
    assert torch.equal(target.forward(3)[0], after[0])


@pytest.mark.parametrize(("dtype", "rows", "reason"), [(torch.float64, 4, "float64"), (torch.float32, 0, "exact_rows")])
def test_what_the_kernels_cannot_do_is_refused(dtype: torch.dtype, rows: int, reason: str) -> None:
    target = lean_target(tiny_model(*ARCHITECTURES["llama"]).to(dtype))
    with pytest.raises(SettingError, match=reason):
        GraphVerify(LeanModel(target._model.shape, target._model.weights), target._cache, rows)
