"""The plot of `benchmarks.index`: building, opening and searching against the number of passages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.plots import save, side_by_side

Results = dict[str, Any]
PANELS = (
    ("building", "s", {"build_s": "seconds", "cpu_s": "of all threads"}),
    ("on disk, in memory", "MB", {"mb_on_disk": "on disk", "peak_mb": "peak while building"}),
    ("searching", "ms", {"p50_ms": "vectors", "faiss_p50_ms": "bare FAISS", "lexical_p50_ms": "words"}),
)


def draw(results: Results, folder: Path) -> dict[str, Path]:
    """Draw it into `folder`; returns the path by name."""
    return save({"index-growth": _growth}, results, folder)


def _growth(results: Results) -> Figure:
    """Double logarithmic; dotted, what grows in proportion."""
    lines = [line for line in results["indexes"] if line["corpus"] == "synthetic"]
    sizes = [line["passages"] for line in lines]
    figure, panels = side_by_side(len(PANELS))
    for panel, (title, unit, columns) in zip(panels, PANELS, strict=True):
        for (column, label), marker in zip(columns.items(), "osD", strict=False):
            panel.plot(sizes, [line[column] for line in lines], marker=marker, markersize=4, label=label)
        first = lines[0][next(iter(columns))]
        panel.plot(sizes, [first * size / sizes[0] for size in sizes], color="grey", linestyle=":", linewidth=0.8)
        panel.set(title=title, xlabel="passages", ylabel=unit, xscale="log", yscale="log")
        panel.legend()
    return figure
