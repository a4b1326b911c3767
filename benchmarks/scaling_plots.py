"""The plots of `benchmarks.scaling_run`: step times and memory against the context, index builds against chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.plots import save, side_by_side

Results = dict[str, Any]


def draw(results: Results, folder: Path) -> dict[str, Path]:
    """Draw what was measured into `folder`; returns the paths by name."""
    drawings = {"step-time": ("steps", _steps), "cache-memory": ("memory", _memory), "index-build": ("index", _index)}
    drawings["drafting-build"] = ("drafting", _drafting)
    return save({name: drawing for name, (table, drawing) in drawings.items() if results.get(table)}, results, folder)


def _lines(panel: Axes, table: list[dict[str, Any]], size: str, columns: dict[str, str]) -> None:
    """A line with a marker at every measured size, for each column under its label."""
    for (column, label), marker in zip(columns.items(), "osD^v<>p" * len(columns), strict=False):
        panel.plot(
            [line[size] for line in table], [line[column] for line in table],
            marker=marker, markersize=4, linewidth=1.2, label=label,
        )  # fmt: skip


def _columns(table: list[dict[str, Any]]) -> dict[str, str]:
    """The columns `ms_NAME`, and what to call them."""
    named = [name for name in table[0] if name.startswith("ms_")]
    return {name: name.removeprefix("ms_").replace("_", " ") for name in named}


def _steps(results: Results) -> Figure:
    """Time of a pass and of the prompt against the context; dotted, the straight line fitted to each pass."""
    figure, (left, right) = side_by_side(2)
    table = results["steps"]
    _lines(left, table, "context", _columns(table))
    sizes = [line["context"] for line in table]
    for fitted in results["growth"]:
        if fitted["table"] == "steps" and fitted["series"].startswith("ms_"):
            line = [fitted["base"] + fitted["per_unit"] * size for size in sizes]
            left.plot(sizes, line, color="grey", linestyle=":", linewidth=0.8, zorder=0)
    left.set(title="a pass", xlabel="context, tokens", ylabel="ms", ylim=(0, None))
    left.legend()
    _lines(right, table, "context", {"prefill_s": "prompt"})
    right.set(title="the prompt", xlabel="prompt, tokens", ylabel="s", ylim=(0, None))
    return figure


def _memory(results: Results) -> Figure:
    """Bytes of the cache, used and allocated, with the formula's line."""
    figure, (panel,) = side_by_side(1)
    table = results["memory"]
    panel.plot(
        [line["context"] for line in table], [line["formula_mb"] for line in table],
        color="grey", linewidth=4, alpha=0.4, label="2 x layers x KV heads x head_dim x bytes x tokens",
    )  # fmt: skip
    columns = {"used_mb": "used", "allocated_mb": "allocated", "scratch_mb": "scratch of attention"}
    _lines(panel, table, "context", columns)
    panel.set(title="KV cache", xlabel="context, tokens", ylabel="MB", ylim=(0, None))
    panel.legend(fontsize=7)
    return figure


def _index(results: Results) -> Figure:
    """Seconds and bytes of an index against its chunks."""
    figure, (left, right) = side_by_side(2)
    table = results["index"]
    columns = {"build_s": "all", "encode_s": "encoder", "other_s": "chunking, searching structures, writing"}
    _lines(left, table, "chunks", columns)
    left.set(title="building an index", xlabel="chunks", ylabel="s", ylim=(0, None))
    left.legend()
    _lines(right, table, "chunks", {"mb_on_disk": "bytes"})
    right.set(title="on disk", xlabel="chunks", ylabel="MB", ylim=(0, None))
    return figure


def _drafting(results: Results) -> Figure:
    """Milliseconds in which drafters take in references."""
    figure, (panel,) = side_by_side(1)
    table = results["drafting"]
    _lines(panel, table, "reference_tokens", _columns(table))
    panel.set(title="taking in references", xlabel="tokens", ylabel="ms", ylim=(0, None))
    panel.legend()
    return figure
