"""The HTML of a race: the same question plain and drafted, two lanes and the chart. Pure functions.

Says "the same text" only when both lanes are done and it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.answers import Answer
from app.page.answers_html import answer_html
from app.page.chart import Step, chart_svg, legend_html
from app.page.html import escape, hint_html

RACE_HINT = hint_html(
    "Ask something: it is answered twice, word by word from the model alone and with words copied from the passages. "
    "The text is the same; watch the time."
)
RACE_TURN = 0  # no turn of a conversation has this id


class Lane(Protocol):
    """One runner: the answer so far, its clock in seconds, and its steps."""

    @property
    def answer(self) -> Answer: ...  # noqa: D102
    @property
    def elapsed_s(self) -> float: ...  # noqa: D102
    @property
    def steps(self) -> Sequence[Step]: ...  # noqa: D102


def race_html(plain: Lane, drafted: Lane) -> str:
    """Both lanes beside each other, what came of it, and the chart of the drafted one."""
    chart = (
        '<section class="qw-steps"><h3>Accepted tokens per step, drafted</h3>'
        f"{chart_svg(drafted.steps)}{legend_html(drafted.steps)}</section>"
    )
    lanes = _lane_html("Plain", plain) + _lane_html("Drafted", drafted)
    return f'<div class="qw-lanes">{lanes}</div>{_verdict_html(plain, drafted)}{chart if drafted.steps else ""}'


def _lane_html(name: str, lane: Lane) -> str:
    tokens = sum(step.tokens for step in lane.steps)
    speed = f" · {tokens / lane.elapsed_s:.0f} tokens/s" if lane.elapsed_s > 0 and tokens else ""
    done = " · done" if lane.answer.finished else ""
    head = f'<h3>{name}</h3><p class="qw-clock">{escape(f"{lane.elapsed_s:.1f} s · {tokens} tokens{speed}{done}")}</p>'
    return f'<section class="qw-lane">{head}{answer_html(lane.answer, RACE_TURN)}</section>'


def _verdict_html(plain: Lane, drafted: Lane) -> str:
    if plain.answer.finished is None or drafted.answer.finished is None:
        return ""
    if "cancelled" in (plain.answer.finished, drafted.answer.finished):
        return '<p class="qw-verdict" role="status">Stopped.</p>'
    same = plain.answer.text == drafted.answer.text
    said = "The same text, to the letter" if same else "The texts differ, which should not be: please report it"
    if plain.elapsed_s > 0 and drafted.elapsed_s > 0:
        said += f"; drafted took {drafted.elapsed_s:.1f} s, plain {plain.elapsed_s:.1f} s: "
        said += f"{plain.elapsed_s / drafted.elapsed_s:.1f} times as fast"
    return f'<p class="qw-verdict" role="status">{escape(said)}.</p>'
