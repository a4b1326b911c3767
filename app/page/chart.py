"""A chart of accepted tokens per step, coloured by source, as inline SVG: pure functions, no script.

One bar per forward pass of the target. Below stands the token that the model gave itself, above it what it accepted
of the draft. It follows that a bar is as high as the step's accept length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.answering.answers import Pass
from app.page.html import attribute, escape

ITSELF = "the model itself"
KNOWN = ("question", "messages", "earlier answer", "similar answer")  # sources beside passages that have a colour
LEAST_BARS, LEAST_TOKENS = 24, 4  # so that a short answer's chart is not all bar
WIDTH, GAP = 8, 2  # of a bar; the chart is stretched to where it stands


def colour(source: str) -> str:
    """The class that colours a source; a passage has the colour that its spans have."""
    kind, _, number = source.partition(" ")
    if kind == "passage" and number.isdecimal():
        return f"qw-s{int(number[-6:]) % 6}"
    return f"qw-s-{KNOWN.index(source)}" if source in KNOWN else "qw-s-other"


def chart_svg(steps: Sequence[Pass]) -> str:
    """The bars; a pass that gave nothing leaves a gap."""
    highest = max([LEAST_TOKENS, *(step.tokens for step in steps)])
    width = max(LEAST_BARS, len(steps)) * (WIDTH + GAP)
    bars = "".join(_bar(number, step, highest) for number, step in enumerate(steps))
    said = attribute(f"Accepted tokens per step: {len(steps)} steps, at most {highest} tokens in one")
    return (
        f'<div class="qw-most">{highest}</div>'
        f'<svg class="qw-chart" role="img" aria-label="{said}" viewBox="0 0 {width} {highest}" '
        f'preserveAspectRatio="none">{bars}</svg>'
    )


def _bar(number: int, step: Pass, highest: int) -> str:
    """One step's stack, a rectangle for each run of tokens of one source."""
    own = max(0, step.tokens - len(step.sources))
    runs: list[tuple[str, int]] = [(ITSELF, own)] if own else []
    for source in step.sources:
        if runs and runs[-1][0] == source:
            runs[-1] = (source, runs[-1][1] + 1)
        else:
            runs.append((source, 1))
    parts, below = [], 0
    for source, tokens in runs:
        below += tokens
        kind = "qw-s-own" if source == ITSELF else colour(source)
        parts.append(
            f'<rect class="{kind}" x="{number * (WIDTH + GAP)}" y="{highest - below}" width="{WIDTH}" '
            f'height="{tokens}"><title>{escape(f"step {number + 1}: {tokens} from {source}")}</title></rect>'
        )
    return "".join(parts)


def legend_html(steps: Sequence[Pass]) -> str:
    """What the colours mean, with how many tokens came from each source, the most first."""
    counts = Counter(source for step in steps for source in step.sources)
    own = sum(max(0, step.tokens - len(step.sources)) for step in steps)
    rows = [(ITSELF, "qw-s-own", own)] + [(source, colour(source), count) for source, count in counts.most_common()]
    items = "".join(
        f'<li><svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{kind}" width="1" height="1"/></svg>'
        f"{escape(source)} <b>{count}</b></li>"
        for source, kind, count in rows
        if count
    )
    return f'<ul class="qw-legend">{items}</ul>'
