"""The HTML of a race: the same question plain and drafted, two lanes and the chart. Pure functions.

Says "the same text" only when both lanes are done and it is.
"""

from __future__ import annotations

from app.answering.race import Lane, RaceState
from app.page.answers_html import answer_html
from app.page.chart import chart_svg, legend_html
from app.page.html import escape, hint_html

RACE_HINT = hint_html(
    "Ask something: it is answered twice at the same time, once word by word by the model alone, once with words "
    "copied from the passages. The text is the same; watch the clocks."
)
UNDECIDED = (None, "cancelled", "nothing-found")  # ends that tell nothing of how fast one was


def race_html(state: RaceState) -> str:
    """The chart of the drafted lane, what came of it, and both lanes beside each other."""
    lanes = _lane_html("Plain", state.plain) + _lane_html("Drafted", state.drafted)
    passes = state.drafted.answer.passes
    chart = (
        '<section class="qw-steps"><h3>Accepted tokens per step, drafted</h3>'
        '<p class="qw-clock">A bar is one step of the model, as high as it gave tokens. Plain is always 1.</p>'
        f"{chart_svg(passes)}{legend_html(passes)}</section>"
    )
    return f'{chart if passes else ""}{_verdict_html(state)}<div class="qw-lanes">{lanes}</div>'


def _lane_html(name: str, lane: Lane) -> str:
    tokens = lane.answer.stats.new_tokens
    done = " · done" if lane.answer.finished else ""
    clock = escape(f"{lane.elapsed_s:.1f} s · {tokens} tokens{done}")
    return (
        f'<section class="qw-lane"><h3>{name}</h3><p class="qw-clock">{clock}</p>{answer_html(lane.answer)}</section>'
    )


def _verdict_html(state: RaceState) -> str:
    plain, drafted = state.plain, state.drafted
    if plain.answer.finished in UNDECIDED or drafted.answer.finished in UNDECIDED:
        return ""
    same = plain.answer.text == drafted.answer.text
    said = "The same text, to the letter" if same else "The texts differ, which must not be: please report it"
    if state.speed_up is not None:
        said += f". Drafted took {drafted.elapsed_s:.1f} s and plain {plain.elapsed_s:.1f} s"
        said += f": {state.speed_up:.1f} times as fast"
    return f'<p class="qw-verdict" role="status">{escape(said)}.</p>'
