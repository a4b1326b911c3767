"""Which headings a position stands under."""

from __future__ import annotations

import pytest

from indexes.passages import Heading, headings_at


@pytest.mark.parametrize(
    ("position", "path"),
    [(0, []), (5, ["A"]), (14, ["A"]), (15, ["A", "B"]), (25, ["A", "B", "D"]), (30, ["A", "C"]), (99, ["E"])],
)
def test_a_position_stands_under_the_last_heading_and_those_above_it(position: int, path: list[str]) -> None:
    levels = {"A": (1, 5), "B": (2, 15), "D": (4, 20), "C": (2, 30), "E": (1, 40)}
    headings = [Heading(level, title, start) for title, (level, start) in levels.items()]
    assert [heading.title for heading in headings_at(headings, position)] == path
