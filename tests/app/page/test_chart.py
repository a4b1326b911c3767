from __future__ import annotations

import bs4
import pytest

from app.answering.answers import Pass
from app.page.chart import chart_svg, colour, legend_html

PASSES = (Pass(1), Pass(4, ("passage 2", "passage 2", "question")), Pass(2, ("elsewhere",)))


def _bars(passes: tuple[Pass, ...]) -> list[tuple[str, int, int, int]]:
    """(class, x, y, height) of each rectangle."""
    rects = bs4.BeautifulSoup(chart_svg(passes), "lxml").find_all("rect")
    return [(rect["class"][0], int(str(rect["x"])), int(str(rect["y"])), int(str(rect["height"]))) for rect in rects]


def test_each_step_is_a_stack_of_the_models_own_token_and_runs_of_sources() -> None:
    assert _bars(PASSES) == [
        ("qw-s-own", 0, 3, 1),
        ("qw-s-own", 10, 3, 1),
        ("qw-s2", 10, 1, 2),
        ("qw-s-0", 10, 0, 1),
        ("qw-s-own", 20, 3, 1),
        ("qw-s-other", 20, 2, 1),
    ]


def test_a_step_whose_tokens_were_all_drafted_has_no_token_of_the_model() -> None:
    assert _bars((Pass(2, ("question", "question")),)) == [("qw-s-0", 0, 2, 2)]


def test_a_chart_of_nothing_is_empty() -> None:
    assert _bars(()) == []


def test_the_legend_counts_tokens_by_source_the_most_first_after_the_model() -> None:
    items = [item.get_text() for item in bs4.BeautifulSoup(legend_html(PASSES), "lxml").find_all("li")]
    assert items == ["the model itself 3", "passage 2 2", "question 1", "elsewhere 1"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("passage 1", "qw-s1"),
        ("passage 6", "qw-s0"),
        ("passage 12", "qw-s0"),
        ("similar answer", "qw-s-3"),
        ("elsewhere", "qw-s-other"),
        ('passage "><script>', "qw-s-other"),
        ("", "qw-s-other"),
    ],
)
def test_a_passage_has_the_colour_of_its_spans(source: str, expected: str) -> None:
    assert colour(source) == expected


def test_a_hostile_source_stays_text() -> None:
    html = chart_svg((Pass(2, ("<script>x</script>",)),)) + legend_html((Pass(2, ("<script>x</script>",)),))
    assert bs4.BeautifulSoup(html, "lxml").script is None
