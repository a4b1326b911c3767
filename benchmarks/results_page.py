"""docs/results.md from what `benchmarks.report` collected: every figure with what it was measured under."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import BUDGETS
from benchmarks.results_sections import sections
from benchmarks.simulation import ORACLES

Results = dict[str, Any]

HEAD = """# Results

Made by `{command}`, which makes it again. Times are this machine's; compare within one table only. What it ran on:

{conditions}
"""

SIMULATED = """## Replayed answers: tokens per forward pass

`python -m benchmarks simulate`: recorded answers of other models are replayed, so these figures depend on drafts
alone (target-guided simulation; the prefill's token is not counted). Each cell is tokens per step at up to so many
draft nodes, and in brackets the nodes that were really drafted. The two oracles know the answer and copy its best
continuation: `oracle` from where the last token stands, `oracle-jump` from anywhere.

`blend` is cross-fitted: neither its numbers nor its phrase stores have seen the answers of the fold that is replayed,
nor other turns of their conversations ([figures.json]({figures}) lists the folds).
`blend-cold` has empty phrase stores, as in a first question about texts that nobody has indexed.
"""

RELIABILITY = """## Does blend know what will be accepted?

Per tenth of predicted probability, at 32 nodes: how many nodes were drafted, how likely it said they were, and how many
were accepted.
"""

DECODED = """## Real answers

`python -m benchmarks decode`: the first {questions} questions of each file, at most {max_new_tokens} new tokens,
greedy, all methods interleaved per question in one process. Speed-up is tokens per second over `plain`, after the
first token. The node budget is adaptive (at most {max_nodes} nodes), and a drafter is kept from question to question.
REST and CREST draft from the first turns of recorded MT-Bench answers. The target is `{target}`; ours have to give the
plain answer in every number format, transformers' own methods drift from it in bfloat16. The methods that need a second
model are measured apart: docs/lab-notes.md.
"""

STORES = """## Datastores: size against accept length

`python -m benchmarks datastores`: stores of one corpus, replayed on texts that share nothing with it, at most
{max_nodes} nodes. `crest, paper` keeps the most common n-grams, as published; so does `crest, common`, with trees of
one level that further look-ups grow; `crest, telling` keeps what tells most beyond its shorter end, per byte.
"""


def render(results: Results, plots: Mapping[str, Path], page: Path, command: str) -> str:
    """The page as Markdown; `page` is where it will lie, for links to the plots."""
    links = {name: os.path.relpath(path, page.parent) for name, path in plots.items()}
    return "\n".join(
        part.strip() + "\n"
        for part in (
            HEAD.format(command=command, conditions=_conditions(results["conditions"])),
            SIMULATED.format(figures=os.path.relpath(plots["nodes"].with_name("figures.json"), page.parent)),
            *(_simulated(one) for one in results["simulate"]),
            _image(links["nodes"], "Tokens per step against draft nodes per step"),
            RELIABILITY,
            *(_reliability(one) for one in results["simulate"]),
            _image(links["reliability"], "Predicted against observed acceptance"),
            "## The n-gram trie's settings\n\nllma_rag.jsonl, references only, as in the paper.",
            _image(links["trie-grid"], "Tokens per step by n and L_p, and by num_draft"),
            DECODED.format(**results["decode"][0]["conditions"]),
            *(_decoded(one) for one in results["decode"]),
            STORES.format(**results["stores"]["conditions"]),
            _stores(results["stores"]),
            _image(links["datastores"], "Tokens per step against bytes on disk"),
            *sections(plots["nodes"].parent, page),
        )
    )


def _conditions(conditions: Mapping[str, Any]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in conditions.items())


def _image(link: str, what: str) -> str:
    return f"![{what}]({link})"


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _simulated(simulated: Mapping[str, Any]) -> str:
    lines = {(line["drafter"], line["max_nodes"]): line for line in simulated["lines"]}
    examples = simulated["lines"][0]["examples"]
    rows = []
    for name in dict.fromkeys(line["drafter"] for line in simulated["lines"]):
        if name in ORACLES:  # no tree, no budget, and no time to speak of
            (line,) = (line for line in simulated["lines"] if line["drafter"] == name)
            rows.append([f"`{name}`", f"{line['tokens_per_step']:.3f}", *[""] * (len(BUDGETS) + 2)])
            continue
        cells = [lines[name, budget] for budget in BUDGETS]
        steps = [f"{cell['tokens_per_step']:.3f} ({cell['nodes_per_step']:g})" for cell in cells]
        timed = lines[name, 32]
        times = [timed["build_ms_per_1000_tokens"], timed["propose_ms_median"], timed["propose_ms_p99"]]
        rows.append([f"`{name}`", *steps, *(times if name != "plain" else [""] * 3)])
    columns = [
        "drafter", *(f"{budget} nodes" for budget in BUDGETS),
        "build ms / 1,000 tokens", "propose ms, median", "p99 (32 nodes)",
    ]  # fmt: skip
    about = f"{examples} answers; blend is fitted on {simulated['fitted_on']}."
    return f"### {simulated['data']}\n\n{about}\n\n{_table(columns, rows)}\n\n{_best(simulated)}"


def _best(simulated: Mapping[str, Any]) -> str:
    """Which drafter leads at each budget: blend, or the page says that it does not."""
    said = []
    for budget in BUDGETS:
        lines = [one for one in simulated["lines"] if one["max_nodes"] == budget and one["drafter"] not in ORACLES]
        first, second = sorted(lines, key=lambda line: -line["tokens_per_step"])[:2]
        said.append(f"{budget} nodes: `{first['drafter']}`, then `{second['drafter']}`")
    return f"Ahead at {'; '.join(said)}."


def _reliability(simulated: Mapping[str, Any]) -> str:
    error = {
        line["drafter"]: line["calibration_error"]
        for line in simulated["lines"]
        if line["max_nodes"] == 32 and "calibration_error" in line
    }
    table = simulated["reliability"]["blend"]
    rows = [[line["predicted_from"], line["nodes"], line["predicted"], line["accepted"]] for line in table]
    errors = ", ".join(f"`{name}` {value}" for name, value in error.items())
    heading = f"### {simulated['data']}\n\nExpected calibration error: {errors}. For `blend`:"
    return f"{heading}\n\n{_table(['predicted from', 'nodes', 'predicted', 'accepted'], rows)}"


def _decoded(result: Mapping[str, Any]) -> str:
    about = result["conditions"]
    rows = [
        [
            f"`{line['method']}`", line["accept_length"], f"{line['speed_up']:.2f}x", line["tokens_per_s"],
            line.get("nodes_per_pass"), f"{line['total_time_against_plain']:.2f}", f"{line['identical_to_plain']:.0%}",
            line.get("propose_ms_median"),
        ]
        for line in result["methods"]
    ]  # fmt: skip
    columns = [
        "method", "accept length", "speed-up", "tokens/s", "nodes per pass", "total time / plain", "identical to plain",
        "propose ms",
    ]  # fmt: skip
    heading = f"### {about['data']}, {about['dtype']}\n\nPrompts of {about['prompt_tokens_mean']} tokens on average."
    failed = [
        f"`{line['method']}` switched itself off {line['drafter_switched_off']}"
        for line in result["methods"]
        if "drafter_switched_off" in line
    ]
    return "\n\n".join([heading, _table(columns, rows), *failed])


def _stores(stores: Mapping[str, Any]) -> str:
    columns = ["corpus", "kind", "settings", "bytes", "tokens_per_step", "nodes_per_step", "lookup_us_median"]
    rows = [
        [_settings(line[column]) if column == "settings" else line[column] for column in columns]
        for line in stores["stores"]
    ]
    said = "\n".join(f"- {one['corpus']}: {one['says']}" for one in stores["comparison"])
    return f"{said}\n\n{_table([column.replace('_', ' ') for column in columns], rows)}"


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items() if value)
