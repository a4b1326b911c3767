"""The sections of docs/results.md for benchmarks that `report` does not run: what lies in its folder as NAME.json.

`python -m benchmarks NAME --json > docs/results/NAME.json` and `report --redraw` put a new run on the page.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.errors import SettingError

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A benchmark's place on the page: its file, and its tables by their keys in it, `without` some columns."""

    name: str
    title: str
    text: str
    tables: tuple[str, ...]
    without: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "peers",
        "Beside other engines",
        "`python -m benchmarks peers`: the same model, prompt tokens, limit and threads for all, greedy, interleaved "
        "per question; an engine that is not asked stands still. Answers differ in length where their tokens do. "
        "int8 is compared with engines in their own formats (llama.cpp in 4 bits).",
        ("methods", "comparisons"),
    ),
    Section(
        "vllm",
        "Inside vLLM",
        "`python -m benchmarks vllm`: our drafter as vLLM's proposer beside vLLM's own, one request at a time and many "
        "at once, in turn. Decode tokens per second are one asker's, after the first token; the others are the "
        "engine's, prompts included. Words are compared in float32.",
        ("methods", "comparisons", "identity"),
    ),
    Section(
        "identity",
        "Exact in 16 bits",
        "`python -m benchmarks identity`: answers with each drafter against plain ones on the same target, token for "
        "token. `hostile` knows the answer and hides it among wrong nodes. Speed is measured apart, below.",
        ("drafters",),
        ("differences", "tokens_per_s"),
    ),
    Section(
        "exactness-cost",
        "What exactness costs, and how answers part without it",
        "The same benchmark on fewer questions and on targets that are not exact: PyTorch's products in the lean pass, "
        "and transformers' own pass. The gap is that of the two largest logits where two answers part.",
        ("drafters",),
        ("differences",),
    ),
    Section(
        "second-turns",
        "Prefix reuse",
        "`python -m benchmarks second-turns`: the time to the first token of a follow-up question.",
        ("turns",),
    ),
    Section(
        "perplexity",
        "What 8 bits cost",
        "`python -m benchmarks perplexity`: on Python's language reference, each token scored once.",
        ("formats",),
    ),
    Section(
        "scaling",
        "Growth",
        "`python -m benchmarks scaling`: times are the fastest of the rounds. Steps, index builds and drafting should "
        "grow in proportion (exponent 1 beside a constant), prefill between that and a square.",
        ("steps", "memory", "index", "drafting", "growth"),
    ),
    Section(
        "index",
        "A million passages",
        "`python -m benchmarks index`: synthetic vectors with the spectrum of real ones, and real text; recall of the "
        "100 nearest against exact search. `faiss` is the same index in bare FAISS, its candidates scored again in "
        "NumPy; `overhead` is what we add to that. `cold` questions find no page that was read before.",
        ("indexes", "probes", "growth"),
    ),
    Section(
        "store-safety",
        "Nothing lost",
        "`pytest tests/indexes/test_store_safety.py -n 0 --full --tried docs/results/store-safety.json`: after each, "
        "the index opens as the old or the new generation, and every acknowledged row is there.",
        ("sweeps",),
    ),
    Section(
        "gpu",
        "On a GPU",
        "`python -m benchmarks gpu`: a well-known shape with random weights, recorded answers replayed.",
        ("steps", "answers"),
    ),
)


def sections(folder: Path, page: Path) -> list[str]:
    """Every section whose file is there. Raises SettingError, naming the file, for one that cannot be read."""
    found = []
    for section in SECTIONS:
        path = folder / f"{section.name}.json"
        if not path.is_file():
            continue
        try:
            result = json.loads(path.read_text("utf-8"))
            plots = sorted((folder / section.name).glob("*.png"))
            found.append(_section(section, result, [os.path.relpath(plot, page.parent) for plot in plots]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise SettingError(f"{path} does not hold figures of `{section.name}`: {error!r}; run it again") from error
    return found


def _section(section: Section, result: Line, plots: list[str]) -> str:
    conditions = [f"{name}: {_cell(value)}" for name, value in result["conditions"].items() if value is not None]
    parts = [f"## {section.title}", section.text, "; ".join(conditions) + "."]
    parts += [_table(result[key], section.without) for key in section.tables if result.get(key)]
    parts += [f"Failed: {_cell(result['failed'])}"] if result.get("failed") else []
    return "\n\n".join([*parts, *(f"![{Path(plot).stem}]({plot})" for plot in plots)])


def _table(lines: list[Line], without: tuple[str, ...]) -> str:
    columns = [name for name in dict.fromkeys(name for line in lines for name in line) if name not in without]
    rows = [[_cell(line.get(column)) for column in columns] for line in lines]
    head = "| " + " | ".join(column.replace("_", " ") for column in columns) + " |"
    return "\n".join([head, "|" + "---|" * len(columns), *("| " + " | ".join(cells) + " |" for cells in rows)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(one)}" for name, one in value.items() if one is not None)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
