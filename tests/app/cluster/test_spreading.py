"""Items spread over a real cluster: in order, once each, with workers that fail or die."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cluster.machines import Share
from app.cluster.session import ray_session
from app.cluster.spreading import Work, spread
from indexes.errors import ClusterError
from tests.app.cluster.conftest import Nodes

TWO = Share(2, 1)


@pytest.fixture
def session(cluster: Nodes) -> Iterator[list[str]]:
    """Ray on the cluster; what it tells people is collected."""
    cluster.complete()
    told: list[str] = []
    with ray_session(cluster.address, told.append):
        yield told


def _double() -> Work:
    return lambda item: [item, item]


def _refuse() -> Work:
    def work(item: int) -> int:
        if item == 3:
            raise KeyError("three")
        return item

    return work


def _die(mark: Path, always: bool) -> Any:
    def work(item: int) -> int:
        if item == 3 and (always or not mark.exists()):
            mark.touch()
            os._exit(1)
        return item

    return lambda: work


def test_results_of_tasks_and_of_actors_come_in_order(session: list[str]) -> None:
    expected = [(number, [f"{number}", f"{number}"]) for number in range(20)]
    items = [item for _, (item, _) in expected]
    assert list(spread(_double, items, None, session.append)) == expected
    assert list(spread(_double, items, lambda: TWO, session.append)) == expected
    assert list(spread(_double, [], None, session.append)) == []


def test_what_a_worker_raises_ends_the_work_and_says_where(session: list[str]) -> None:
    with pytest.raises(ClusterError, match=r"KeyError: 'three', on \S+"):
        list(spread(_refuse, range(9), None, session.append))


def test_an_actor_that_dies_once_costs_nothing_and_doubles_nothing(session: list[str], tmp_path: Path) -> None:
    done = list(spread(_die(tmp_path / "dead", False), range(9), lambda: TWO, session.append, ordered=False))
    assert sorted(done) == [(number, number) for number in range(9)]
    assert ["Ray lost a worker" in line for line in session[1:]] == [True]


def test_an_item_that_kills_every_actor_ends_the_work_when_all_others_are_done(
    session: list[str], tmp_path: Path
) -> None:
    done: list[tuple[int, int]] = []
    deadly = spread(_die(tmp_path / "dead", True), range(9), lambda: Share(1, 1), session.append, ordered=False)
    with pytest.raises(ClusterError, match="3 times without a result") as raised:
        done.extend(deadly)
    assert "; 1 are not done" in str(raised.value)
    assert sorted(done) == [(number, number) for number in range(9) if number != 3]
