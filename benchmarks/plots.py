"""The report's figures as PNG files. Each function draws one, from what `benchmarks.report` collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.simulation import ORACLES

Results = dict[str, Any]

STYLE: Any = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "legend.frameon": False,
}  # fmt: skip
_MARKERS = "osD^v<>pX*P"


def draw(results: Results, folder: Path) -> dict[str, Path]:
    """Draw every figure into `folder`; returns their paths by name."""
    drawings: dict[str, Callable[[Results], Figure]] = {
        "nodes": _nodes, "trie-grid": _trie_grid, "datastores": _datastores, "reliability": _reliability
    }  # fmt: skip
    return save(drawings, results, folder)


def save(drawings: Mapping[str, Callable[[Results], Figure]], results: Results, folder: Path) -> dict[str, Path]:
    """Draw these figures into `folder`; returns their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, drawing in drawings.items():
        with mpl.rc_context(STYLE):
            paths[name] = folder / f"{name}.png"
            drawing(results).savefig(paths[name], dpi=110, metadata={"Software": None})
    return paths


def side_by_side(count: int) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels."""
    figure = Figure(figsize=(4.2 * count, 3.6), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def _nodes(results: Results) -> Figure:
    """Tokens per step against the nodes that were really drafted, a panel per data file."""
    figure, panels = side_by_side(len(results["simulate"]))
    for panel, simulated in zip(panels, results["simulate"], strict=True):
        names = list(dict.fromkeys(line["drafter"] for line in simulated["lines"]))
        for number, name in enumerate(name for name in names if name != "plain"):
            lines = [line for line in simulated["lines"] if line["drafter"] == name]
            if name in ORACLES:
                best = max(line["tokens_per_step"] for line in lines)
                panel.axhline(best, linestyle=":" if name == "oracle" else "--", color="grey", label=name)
                continue
            panel.plot(
                [line["nodes_per_step"] for line in lines], [line["tokens_per_step"] for line in lines],
                marker=_MARKERS[number % len(_MARKERS)], markersize=4, linewidth=1 + (name == "blend"), label=name,
            )  # fmt: skip
        panel.set(title=simulated["data"], xlabel="draft nodes per step", ylabel="tokens per step")
    panels[0].legend(fontsize=7)
    return figure


def _trie_grid(results: Results) -> Figure:
    """Tokens per step of the n-gram trie, n by L_p, and against num_draft."""
    figure, (left, right) = side_by_side(2)
    grid = {(line["n"], line["prefix_length"]): line["tokens_per_step"] for line in results["trie"]["grid"]}
    rows, columns = sorted({prefix for _, prefix in grid}), sorted({n for n, _ in grid})
    values = [[grid[n, prefix] for n in columns] for prefix in rows]
    image = left.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    least, most = min(map(min, values)), max(map(max, values))
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            dark = value < (least + most) / 2
            left.text(column, row, f"{value:.2f}", ha="center", va="center", color="w" if dark else "k", fontsize=6)
    left.set_xticks(range(len(columns)), list(map(str, columns)))
    left.set_yticks(range(len(rows)), list(map(str, rows)))
    left.grid(visible=False)
    left.set(title="n-gram trie, 32 nodes", xlabel="n", ylabel="L_p")
    figure.colorbar(image, ax=left, label="tokens per step")
    ablation = results["trie"]["num_draft"]
    right.plot([line["max_nodes"] for line in ablation], [line["tokens_per_step"] for line in ablation], marker="o")
    right.set_xscale("log", base=2)
    right.set(title="n = 13, L_p = 3", xlabel="num_draft", ylabel="tokens per step")
    return figure


def _datastores(results: Results) -> Figure:
    """Tokens per step against the datastore's bytes, REST and CREST, a panel per corpus."""
    stores = results["stores"]["stores"]
    corpora = list(dict.fromkeys(line["corpus"] for line in stores))
    figure, panels = side_by_side(len(corpora))
    for panel, corpus in zip(panels, corpora, strict=True):
        kinds = dict.fromkeys(line["kind"] for line in stores)
        for marker, kind in zip(_MARKERS, kinds, strict=False):
            lines = [line for line in stores if (line["corpus"], line["kind"]) == (corpus, kind)]
            lines.sort(key=lambda line: int(line["bytes"]))
            sizes = [line["bytes"] / 1e6 for line in lines]
            panel.plot(sizes, [line["tokens_per_step"] for line in lines], marker=marker, label=kind)
        panel.set_xscale("log")
        panel.set(title=corpus, xlabel="datastore, MB on disk", ylabel="tokens per step")
    panels[0].legend()
    return figure


def _reliability(results: Results) -> Figure:
    """How often nodes were accepted against how likely blend said they were, 32 nodes, a panel per data file."""
    figure, panels = side_by_side(len(results["simulate"]))
    for panel, simulated in zip(panels, results["simulate"], strict=True):
        panel.plot([0, 1], [0, 1], color="grey", linestyle=":")
        for name, table in simulated["reliability"].items():
            sizes = [4 + 60 * line["nodes"] / max(one["nodes"] for one in table) for line in table]
            predicted, accepted = ([line[key] for line in table] for key in ("predicted", "accepted"))
            panel.plot(predicted, accepted, linewidth=1, label=name)
            panel.scatter(predicted, accepted, s=sizes)
        panel.set(
            title=simulated["data"], xlabel="predicted to be accepted", ylabel="accepted", xlim=(0, 1), ylim=(0, 1)
        )
    panels[0].legend()
    return figure
